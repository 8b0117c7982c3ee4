//! The product's name, and what is derived from it.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use http::{HeaderName, HeaderValue};

/// The product's name, from which its header names, key prefixes and `User-Agent` come.
///
/// The specification writes *Service* where the product's own name stands; that is the default.
/// Everything is derived once, here, so using it costs nothing per request. Cloning is cheap.
///
/// ```
/// use call_assistant::Product;
///
/// let product = Product::new("Acme-Voice")?;
/// assert_eq!(product.signature_header(), "x-acme-voice-signature");
/// assert_eq!(product.live_key_prefix(), "acme_voice_live_");
/// assert_eq!(product.user_agent(), "Acme-Voice-Webhooks/1.0");
///
/// assert_eq!(Product::default().event_header(), "x-service-event");
/// # Ok::<(), call_assistant::ProductError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Product(Arc<Derived>);

#[derive(PartialEq, Eq)]
struct Derived {
    name: String,
    signature: HeaderName,
    event: HeaderName,
    delivery: HeaderName,
    user_agent: HeaderValue,
    live_key_prefix: String,
    test_key_prefix: String,
}

impl Product {
    /// The longest name accepted, in bytes.
    pub const MAX_LEN: usize = 32;

    /// Takes a name of ASCII letters and digits, in words joined by single hyphens.
    ///
    /// Header names ignore case and `User-Agent` keeps it; in key prefixes letters are lowercase
    /// and hyphens become underscores.
    ///
    /// # Errors
    /// An empty name, one over [`MAX_LEN`](Self::MAX_LEN) bytes, one that does not begin with a
    /// letter, or one with a character that has no place in all three.
    pub fn new(name: &str) -> Result<Self, ProductError> {
        check(name)?;
        let lower = name.to_ascii_lowercase();
        let header = |what: &str| {
            HeaderName::try_from(format!("x-{lower}-{what}"))
                .map_err(|_| ProductError::Character { at: 0 })
        };
        let slug = lower.replace('-', "_");
        Ok(Self(Arc::new(Derived {
            name: name.into(),
            signature: header("signature")?,
            event: header("event")?,
            delivery: header("delivery")?,
            user_agent: HeaderValue::try_from(format!("{name}-Webhooks/1.0"))
                .map_err(|_| ProductError::Character { at: 0 })?,
            live_key_prefix: format!("{slug}_live_"),
            test_key_prefix: format!("{slug}_test_"),
        })))
    }

    /// The name as given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// `X-Service-Signature`: when a delivery was signed, and the digests.
    #[must_use]
    pub fn signature_header(&self) -> &HeaderName {
        &self.0.signature
    }

    /// `X-Service-Event`: the event's type. Not covered by the signature.
    #[must_use]
    pub fn event_header(&self) -> &HeaderName {
        &self.0.event
    }

    /// `X-Service-Delivery`: the event's id. Not covered by the signature.
    #[must_use]
    pub fn delivery_header(&self) -> &HeaderName {
        &self.0.delivery
    }

    /// `Service-Webhooks/1.0`: the `User-Agent` of deliveries.
    #[must_use]
    pub fn user_agent(&self) -> &HeaderValue {
        &self.0.user_agent
    }

    /// `service_live_`: how production keys begin.
    #[must_use]
    pub fn live_key_prefix(&self) -> &str {
        &self.0.live_key_prefix
    }

    /// `service_test_`: how test keys begin.
    #[must_use]
    pub fn test_key_prefix(&self) -> &str {
        &self.0.test_key_prefix
    }
}

impl Default for Product {
    /// The specification's neutral name, `Service`.
    fn default() -> Self {
        Self(Arc::new(Derived {
            name: "Service".into(),
            signature: HeaderName::from_static("x-service-signature"),
            event: HeaderName::from_static("x-service-event"),
            delivery: HeaderName::from_static("x-service-delivery"),
            user_agent: HeaderValue::from_static("Service-Webhooks/1.0"),
            live_key_prefix: "service_live_".into(),
            test_key_prefix: "service_test_".into(),
        }))
    }
}

impl fmt::Debug for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Product").field(&self.0.name).finish()
    }
}

/// Why a name cannot be a [`Product`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProductError {
    /// The name is empty.
    Empty,
    /// The name has more than [`Product::MAX_LEN`] bytes.
    TooLong,
    /// The byte at this position is not allowed there.
    Character {
        /// The position, from 0.
        at: usize,
    },
}

// Written out: thiserror would bring six packages into the bare crate.
impl fmt::Display for ProductError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("product name is empty"),
            Self::TooLong => {
                write!(f, "product name is longer than {} bytes", Product::MAX_LEN)
            }
            Self::Character { at } => write!(
                f,
                "product name has a character at byte {at} that is not allowed there: letters \
                 and digits in words joined by single hyphens, a letter first"
            ),
        }
    }
}

impl core::error::Error for ProductError {}

fn check(name: &str) -> Result<(), ProductError> {
    if name.is_empty() {
        return Err(ProductError::Empty);
    }
    if name.len() > Product::MAX_LEN {
        return Err(ProductError::TooLong);
    }
    let mut before = b'-';
    for (at, byte) in name.bytes().enumerate() {
        let fits = match byte {
            b'-' => before != b'-',
            b'0'..=b'9' => at > 0,
            _ => byte.is_ascii_alphabetic(),
        };
        if !fits {
            return Err(ProductError::Character { at });
        }
        before = byte;
    }
    if before == b'-' {
        return Err(ProductError::Character { at: name.len().saturating_sub(1) });
    }
    Ok(())
}
