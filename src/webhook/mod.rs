//! Signs and verifies webhooks. Senders and receivers of deliveries use this module.
//!
//! ```
//! use call_assistant::webhook::{SigningSecret, Verifier};
//! # use call_assistant::Timestamp;
//! # use call_assistant::webhook::{Signer, testing};
//!
//! let secret = SigningSecret::parse("whsec_from-your-secret-store")?;
//! let verifier = Verifier::new(secret.clone()); // once, when the program starts
//!
//! # let now = Timestamp::from_unix(1_767_225_600).unwrap();
//! # let body = br#"{"id":"evt_1","type":"ping"}"#;
//! # let request = testing::signed_request(&Signer::new(secret), "ping", "evt_1", body, now)?;
//! # let headers = request.headers();
//! // `headers` and `body` are those of the request, `now` is the time.
//! let status = match verifier.verify(headers, body, now) {
//!     Ok(verified) => {
//!         assert_eq!(verified.bytes(), body); // the exact bytes: store them, then acknowledge
//!         http::StatusCode::NO_CONTENT
//!     }
//!     Err(error) => error.response().into_status(), // 400; log the error, it says what is wrong
//! };
//! assert_eq!(status, 204);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Verify the body before any other code changes it. If JSON middleware parses and rewrites the
//! body, the signed bytes are lost. If your framework has its own header types, pass
//! [`DeliveryHeaders`] to [`Verifier::verify_parts`]. With the feature `client`,
//! `Verifier::receive` also reads the event and returns a receipt. In `webhook::receiver`, only
//! this receipt can create a 2xx response.
//!
//! # The signature
//!
//! Each attempt of a delivery is a POST request with its own signature. Three headers of the
//! request are named after the [`Product`](crate::Product):
//!
//! | header | content |
//! |---|---|
//! | `X-Service-Signature` | `t=UNIX_SECONDS,v1=HEX`, one `v1` for each secret in use |
//! | `X-Service-Event` | the event's type; not covered by the signature |
//! | `X-Service-Delivery` | the event's id; not covered by the signature |
//!
//! `HEX` is an HMAC-SHA256 in lowercase hex. The HMAC's input is the timestamp as written, a
//! period, and the exact body. **The key is the complete text of the secret, including `whsec_`.**
//! The key is never base64-decoded. Libraries for Standard Webhooks base64-decode a secret that
//! begins with `whsec_`, and therefore cannot verify the deliveries.
//!
//! The rules for the signature header are strict, because all programs must read a header in the
//! same way:
//!
//! - The header has at most 1024 bytes and at most 16 parts. Commas separate the parts. Spaces and
//!   tabs are allowed only around a part. All other bytes are printable ASCII.
//! - A part has the form `name=value`. Names are case-sensitive. Parts with names other than `t`
//!   and `v1` are ignored.
//! - Exactly one `t` is present. The value of `t` has 1 to 19 digits, without a sign or a leading
//!   zero. The signature covers these digits as written.
//! - At least one `v1` is required. The verifier tries every well-formed `v1`, and one match is
//!   enough. If at least one `v1` is well formed, each malformed `v1` is ignored. A digest in
//!   uppercase hex is rejected. If this digest is otherwise right, the error reports the uppercase
//!   letters.
//! - A delivery with a second signature header is rejected.
//!
//! The verifier checks the digest before the time. The time `t` may differ by 300 seconds from the
//! receiver's clock, in both directions: see the [protocol](crate::guide::protocol#signatures).
//!
//! # Rotating a secret
//!
//! During a rotation, the service and the customer have two secrets. The service signs with both
//! secrets, and the customer accepts either secret:
//!
//! ```
//! # use call_assistant::Timestamp;
//! use call_assistant::webhook::{Signer, SigningSecret, Verifier};
//! # use call_assistant::webhook::testing;
//!
//! let (old, new) = (SigningSecret::parse("whsec_old")?, SigningSecret::parse("whsec_new")?);
//! # let now = Timestamp::from_unix(1_767_225_600).unwrap();
//! let mut signer = Signer::new(old.clone());
//! signer.rotate(new.clone(), Signer::OVERLAP, now)?; // at most four sign: receivers read no more
//! let verifier = Verifier::new(new).with_secret(old); // any number, so there is no error
//! # let request = testing::signed_request(&signer, "ping", "evt_1", b"{}", now)?;
//! let verified = verifier.verify(request.headers(), request.body(), now)?;
//! assert_eq!(verified.secret_index(), 0); // the new one: once this is so for all, remove the old one
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A service stores both secrets and the time at which the old secret expires: see [`Signer`].

#[cfg(feature = "events")]
pub mod event;
#[cfg(feature = "explain")]
pub mod explain;
mod grammar;
mod headers;
#[cfg(feature = "client")]
pub mod receiver;
mod response;
#[cfg(feature = "service")]
pub mod sender;
mod setup_error;
mod signer;
mod signing_secret;
pub mod testing;
mod verifier;
mod verify_error;

pub use grammar::MalformedReason;
pub use headers::{DeliveryHeader, DeliveryHeaders};
pub use response::WebhookResponse;
pub use setup_error::SetupError;
pub use signer::{SignatureHeader, Signer};
pub use signing_secret::SigningSecret;
pub use verifier::{Verified, Verifier};
pub use verify_error::VerifyError;
