//! Why a signature does not match, in words. For logs and support; never for the sender.
//!
//! After a mismatch there is no telling what was signed. But nearly every mismatch has one of a
//! few dozen causes, and each of them can be undone: take the line end off again, write the JSON
//! as the service writes it, drop the quotes from the secret. **If that gives the digest that was
//! received, it is the cause, proven.** What could not be proven is called a guess, or not
//! mentioned.
//!
//! This is the cold path: it may compute thousands of digests. Do not run it for everybody who
//! sends a bad signature.
//!
//! ```
//! use call_assistant::Timestamp;
//! use call_assistant::webhook::explain::{BodyChange, Cause, Evidence};
//! use call_assistant::webhook::{DeliveryHeaders, Signer, SigningSecret};
//!
//! let now = Timestamp::from_unix(1_767_225_600).unwrap();
//! let text = "whsec_test";
//! let sent = Signer::new(SigningSecret::parse(text)?).sign(br#"{"id":"evt_1"}"#, now);
//!
//! // A middleware has read the JSON and written it again.
//! let body = br#"{"id": "evt_1"}"#;
//! let headers = DeliveryHeaders::new().signature(sent.as_str().as_bytes());
//! let explanation = Evidence::new(headers, body, text).explain(now);
//!
//! assert!(explanation.is_proven());
//! assert!(matches!(explanation.causes(), [Cause::Body(BodyChange::Rewritten(_))]));
//! assert_eq!(
//!     explanation.to_string(),
//!     "proven: the body was read as JSON and written again; signed was the same JSON written \
//!      without blanks",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod body;
mod cause;
mod rewrite;
mod search;
mod secret;
mod target;

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::headers::DeliveryHeaders;
use super::verifier::Verifier;
use crate::Timestamp;

pub use body::BodyChange;
pub use cause::{Cause, TextChange};
pub use rewrite::{Blanks, Escapes, JsonForm, KeyOrder};
pub use secret::SecretChange;

/// What a receiver has in hand when a delivery was refused.
#[derive(Clone)]
pub struct Evidence<'a> {
    headers: DeliveryHeaders<'a>,
    body: &'a [u8],
    secrets: Vec<&'a str>,
    deliveries: Vec<(DeliveryHeaders<'a>, &'a [u8])>,
    tolerance: Duration,
}

impl<'a> Evidence<'a> {
    /// For bodies longer than this, only what may have happened to the secret and the header is
    /// tried, not what may have happened to the body: 256 KiB. Nor is JSON written in forms that take
    /// more than four times as much.
    pub const MAX_SEARCHED: usize = 256 * 1024;

    /// The headers and the body as the handler has them, and the text of the secret as it stands
    /// in the configuration, before anything was parsed or trimmed.
    #[must_use]
    pub fn new(headers: DeliveryHeaders<'a>, body: &'a [u8], secret: &'a str) -> Self {
        Self {
            headers,
            body,
            secrets: alloc::vec![secret],
            deliveries: Vec::new(),
            tolerance: Verifier::TOLERANCE,
        }
    }

    /// Another secret that is known here: of another endpoint, of another environment, of before.
    #[must_use]
    pub fn known_secret(mut self, secret: &'a str) -> Self {
        self.secrets.push(secret);
        self
    }

    /// Another delivery received at about the same time, with which this one may have got mixed
    /// up.
    #[must_use]
    pub fn known_delivery(mut self, headers: DeliveryHeaders<'a>, body: &'a [u8]) -> Self {
        self.deliveries.push((headers, body));
        self
    }

    /// How far the time may be off, where the verifier was given
    /// [another tolerance](Verifier::with_tolerance).
    #[must_use]
    pub fn with_tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Looks for the cause.
    #[must_use]
    pub fn explain(&self, now: Timestamp) -> Explanation {
        search::explain(self, now)
    }
}

/// Neither secrets nor bodies.
impl fmt::Debug for Evidence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evidence")
            .field("headers", &self.headers)
            .field("body_len", &self.body.len())
            .field("secrets", &self.secrets.len())
            .field("deliveries", &self.deliveries.len())
            .finish()
    }
}

/// What was found.
///
/// Its `Display` is a line for a log. Neither it nor `Debug` shows a secret, a digest or the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    causes: Vec<Cause>,
    proven: bool,
}

impl Explanation {
    /// Whether the causes, together, were confirmed: undoing them gave the digest received, or
    /// they can be seen from the header alone. Otherwise each of them is a guess of its own.
    #[must_use]
    pub const fn is_proven(&self) -> bool {
        self.proven
    }

    /// The causes. None, and proven: nothing is wrong with the signature. None, and not proven:
    /// nothing that is looked for here explains it.
    #[must_use]
    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }

    fn proven(causes: Vec<Cause>) -> Self {
        Self { causes, proven: true }
    }

    fn guessed(causes: Vec<Cause>) -> Self {
        Self { causes, proven: false }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (found, joined) = match (self.proven, self.causes.is_empty()) {
            (true, true) => return f.write_str("proven: nothing is wrong with the signature"),
            (false, true) => {
                return f.write_str(
                    "no cause found: forged, signed with a secret that is not known here, or \
                     changed in a way that cannot be undone",
                );
            }
            (true, false) => ("proven: ", ", and "),
            (false, false) => ("a guess: ", ", or "),
        };
        f.write_str(found)?;
        for (index, cause) in self.causes.iter().enumerate() {
            if index > 0 {
                f.write_str(joined)?;
            }
            write!(f, "{cause}")?;
        }
        Ok(())
    }
}
