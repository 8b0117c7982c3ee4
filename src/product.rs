//! The product's name, and the names derived from it.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use http::{HeaderName, HeaderValue};

use crate::text::{TextError, TextReason, check_len, check_present};

/// The product's name, with the header names, key prefixes and `User-Agent` that are derived from it.
///
/// The default name is *Service*, as in the [protocol](crate::guide::protocol). All derived names
/// are computed once, when the product is created. Cloning a product is cheap.
///
/// ```
/// use call_assistant::Product;
///
/// let product = Product::new("Acme-Voice")?;
/// assert_eq!(product.signature_header(), "x-acme-voice-signature");
/// assert_eq!(product.delivery_header(), "x-acme-voice-delivery");
/// assert_eq!(product.user_agent(), "Acme-Voice-Webhooks/1.0");
///
/// assert_eq!(Product::default().event_header(), "x-service-event");
/// # Ok::<(), call_assistant::TextError>(())
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
    /// The longest name: 32 bytes.
    pub const MAX_LEN: usize = 32;

    /// Creates a product from a name: words of ASCII letters and digits, joined by single hyphens.
    ///
    /// Header names ignore case. The `User-Agent` keeps the case of the name. In key prefixes,
    /// letters are lowercase and hyphens become underscores.
    ///
    /// # Errors
    /// Returns an error if the name is empty, has more than [`MAX_LEN`](Self::MAX_LEN) bytes, does
    /// not begin with a letter, or has a character that is not allowed.
    pub fn new(name: &str) -> Result<Self, TextError> {
        check(name)?;
        Ok(Self::derive(name))
    }

    #[expect(clippy::expect_used, reason = "letters, digits and hyphens are allowed in headers")]
    fn derive(name: &str) -> Self {
        let lower = name.to_ascii_lowercase();
        let slug = lower.replace('-', "_");
        let header = |what: &str| {
            HeaderName::try_from(format!("x-{lower}-{what}")).expect("a name that was checked")
        };
        Self(Arc::new(Derived {
            name: name.into(),
            signature: header("signature"),
            event: header("event"),
            delivery: header("delivery"),
            user_agent: HeaderValue::try_from(format!("{name}-Webhooks/1.0"))
                .expect("a name that was checked"),
            live_key_prefix: format!("{slug}_live_"),
            test_key_prefix: format!("{slug}_test_"),
        }))
    }

    /// Returns the name as given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns `X-Service-Signature`, the header with the time of signing and the digests.
    #[must_use]
    pub fn signature_header(&self) -> &HeaderName {
        &self.0.signature
    }

    /// Returns `X-Service-Event`, the header with the event's type. This header is not signed.
    #[must_use]
    pub fn event_header(&self) -> &HeaderName {
        &self.0.event
    }

    /// Returns `X-Service-Delivery`, the header with the event's id. This header is not signed.
    #[must_use]
    pub fn delivery_header(&self) -> &HeaderName {
        &self.0.delivery
    }

    /// Returns `Service-Webhooks/1.0`: the `User-Agent` of deliveries.
    #[must_use]
    pub fn user_agent(&self) -> &HeaderValue {
        &self.0.user_agent
    }

    /// Returns `service_live_`, the prefix of production keys.
    #[cfg(any(feature = "client", feature = "service"))]
    pub(crate) fn live_key_prefix(&self) -> &str {
        &self.0.live_key_prefix
    }

    /// Returns `service_test_`, the prefix of test keys.
    #[cfg(any(feature = "client", feature = "service"))]
    pub(crate) fn test_key_prefix(&self) -> &str {
        &self.0.test_key_prefix
    }
}

impl Default for Product {
    /// Creates the product `Service`.
    fn default() -> Self {
        Self::derive("Service")
    }
}

impl fmt::Debug for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Product").field(&self.0.name).finish()
    }
}

const WHAT: &str = "product name";

fn check(name: &str) -> Result<(), TextError> {
    check_present(WHAT, name)?;
    check_len(WHAT, name, Product::MAX_LEN)?;
    let mut before = b'-';
    for (at, byte) in name.bytes().chain([b'-']).enumerate() {
        let fits = match byte {
            b'-' => before != b'-',
            b'0'..=b'9' => at > 0,
            _ => byte.is_ascii_alphabetic(),
        };
        if !fits {
            // A hyphen at the end is seen only now.
            let at = at.min(name.len().saturating_sub(1));
            return Err(TextError::new(WHAT, TextReason::Character { at }, ALLOWED));
        }
        before = byte;
    }
    Ok(())
}

const ALLOWED: &str =
    "allowed there: letters and digits in words joined by single hyphens, a letter first";
