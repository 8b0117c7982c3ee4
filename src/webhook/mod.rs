//! The language both ends of a webhook speak: who signed which bytes, and when.
//!
//! A delivery is a POST whose body the service signs afresh for every attempt. Beside the body
//! stand three headers, named after the [`Product`](crate::Product):
//!
//! | header | content |
//! |---|---|
//! | `X-Service-Signature` | `t=UNIX_SECONDS,v1=HEX`, one `v1` for each secret in use |
//! | `X-Service-Event` | the event's type; not covered by the signature |
//! | `X-Service-Delivery` | the event's id; not covered by the signature |
//!
//! `HEX` is the lowercase hex of HMAC-SHA256 over the timestamp as written, a period, and the body
//! byte for byte. **The key is the secret's complete text, `whsec_` included.** It is never
//! base64-decoded, which is what libraries for Standard Webhooks do with a secret that looks the
//! same; with one of those every delivery mismatches.
//!
//! The header is read strictly: what two readers could read differently is refused.
//!
//! - It has at most 1024 bytes and 16 parts with commas between. Blanks and tabs may stand around a
//!   part, nowhere else, and no byte that is not printable ASCII.
//! - A part is `name=value`. Names are case-sensitive; those other than `t` and `v1` mean nothing.
//! - There is one `t`: 1 to 19 digits, without a sign or a leading zero. What is signed is its text.
//! - There is a `v1` at least. All are tried, and one good one suffices; an ill-formed one is passed
//!   over where there is another. Uppercase hex is refused, and named where it is the right digest.
//! - None of the three headers is there twice.
//!
//! The digest is judged before the time, which may be off by 300 seconds either way.
//!
//! # Receiving
//!
//! Verify before anything else touches the body: a JSON middleware that parses and writes it again
//! has already lost the bytes that were signed.
//!
//! ```
//! use call_assistant::Timestamp;
//! use call_assistant::webhook::{Signer, SigningSecret, Verifier, WebhookResponse, testing};
//!
//! let secret = SigningSecret::parse("whsec_kept-where-secrets-are-kept")?;
//! let verifier = Verifier::new(secret.clone()); // once, when the program starts
//!
//! # let now = Timestamp::from_unix(1_767_225_600).unwrap();
//! # let body = br#"{"id":"evt_1","type":"ping"}"#;
//! # let request = testing::signed_request(&Signer::new(secret), "ping", "evt_1", body, now)?;
//! # let headers = request.headers();
//! let answer: http::Response<String> = match verifier.verify(headers, body, now) {
//!     // The exact bytes, proven: queue them or read them, then acknowledge.
//!     Ok(verified) => {
//!         assert_eq!(verified.bytes(), body);
//!         WebhookResponse::Accepted.into_response()
//!     }
//!     // 400 with nothing in it. `refused` says precisely what was wrong, for the log.
//!     Err(refused) => refused.into_response(),
//! };
//! assert_eq!(answer.status(), 204);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A host whose framework has header types of its own passes its headers as text:
//! [`DeliveryHeaders`] and [`Verifier::verify_parts`].
//!
//! # Rotating a secret
//!
//! Both ends hold two secrets for a while: the service signs with both
//! ([`Signer::newest_first`]), the customer accepts either ([`Verifier::and`]), and
//! [`Verified::secret`] tells the customer when the old one has fallen out of use.

#[cfg(feature = "events")]
pub mod event;
#[cfg(feature = "events")]
pub mod explain;
mod grammar;
mod headers;
#[cfg(feature = "client")]
pub mod receiver;
mod response;
mod secret;
#[cfg(feature = "service")]
pub mod sender;
mod signer;
pub mod testing;
mod verifier;
mod verify_error;

pub use grammar::MalformedReason;
pub use headers::{DeliveryHeader, DeliveryHeaders};
pub use response::WebhookResponse;
pub use secret::{SecretError, SigningSecret};
pub use signer::{SignatureHeader, Signer, SignerError};
pub use verifier::{ToleranceError, Verified, Verifier};
pub use verify_error::VerifyError;
