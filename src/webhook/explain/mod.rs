//! Explains why a signature does not match. Explanations are for logs and support, never for the
//! sender.
//!
//! ```
//! use call_assistant::webhook::explain::Evidence;
//! use call_assistant::webhook::{DeliveryHeaders, Signer, SigningSecret, testing};
//! use call_assistant::{Product, Timestamp};
//!
//! let now = Timestamp::from_unix(1_767_225_600).unwrap();
//! let text = "whsec_test"; // the secret, as it stands in your configuration
//! let signer = Signer::new(SigningSecret::parse(text)?);
//! let request = testing::signed_request(&signer, "ping", "evt_1", br#"{"id":"evt_1"}"#, now)?;
//!
//! // A middleware has read the JSON and written it again.
//! let body = br#"{"id": "evt_1"}"#;
//! let headers = DeliveryHeaders::from_map(&Product::default(), request.headers());
//! let explanation = Evidence::new(headers, body, text).explain(now);
//!
//! assert!(explanation.is_proven());
//! assert_eq!(explanation.causes()[0].as_str(), "body_rewritten");
//! assert_eq!(
//!     explanation.to_string(),
//!     "proven: the body was read as JSON and written again; the same JSON was signed, written \
//!      without spaces",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A mismatch alone does not show which bytes were signed. But nearly every mismatch has one of a
//! few dozen causes, and the search can undo each of these causes. For example, the search removes
//! a line end, writes the JSON as the service does, or removes the quotes around the secret. **If
//! undoing a cause gives the received digest, the cause is proven.** If no cause is proven, the
//! search returns guesses or nothing. [`Cause`] lists the causes.
//!
//! For a body that was rewritten as other JSON, the search does not vary the secrets. If the
//! secret's text is also wrong, the result is a guess about the secret. Correct the secret, and
//! explain the mismatch again.
//!
//! The search computes up to a few hundred digests of the received body, and thousands of digests
//! of changed bodies. In total, the search hashes and compares at most 64 times the length of the
//! evidence (see [`Explanation::work`]). At worst, the search takes seconds. Therefore do not run
//! the search for every bad signature. The [protocol](crate::guide::protocol) defines a correct
//! signature.
//!
//! Two tools of the repository give the same explanations. The program `verify explain` reads a
//! captured request. The page `explain.html` works in a browser and sends nothing.

// Each file uses only those named before it: evidence, explanation, base64, encodings, header,
// key_candidates, body, json, guess, search.
mod base64;
mod body;
mod encodings;
mod evidence;
mod explanation;
mod guess;
mod header;
mod json;
mod key_candidates;
mod search;

pub use evidence::Evidence;
pub use explanation::{Cause, Explanation};
