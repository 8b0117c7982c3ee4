//! Creates signed requests for the tests of a receiver.
//!
//! ```
//! use core::time::Duration;
//! use call_assistant::Timestamp;
//! use call_assistant::webhook::{Signer, SigningSecret, Verifier, VerifyError, testing};
//!
//! let secret = SigningSecret::parse("whsec_test")?;
//! let signer = Signer::new(secret.clone());
//! let now = Timestamp::from_unix(1_767_225_600).unwrap();
//! let body = br#"{"id":"evt_1","type":"ping","created_at":"2026-01-01T00:00:00+00:00",
//!     "api_version":"2026-01-15","account_id":"acct_1","origin":null,"data":{"message":"hello"}}"#;
//!
//! let mut request = testing::signed_request(&signer, "ping", "evt_1", body, now)?;
//! // my_receiver(request.clone()) answers 2xx
//! # let verifier = Verifier::new(secret);
//! # let verify = |r: &http::Request<Vec<u8>>, now| verifier.verify(r.headers(), r.body(), now).map(drop);
//! # assert_eq!(verify(&request, now), Ok(()));
//!
//! let an_hour_ago = now.saturating_sub(Duration::from_secs(3600));
//! let stale = testing::signed_request(&signer, "ping", "evt_1", body, an_hour_ago)?;
//! # assert!(matches!(verify(&stale, now), Err(VerifyError::TooOld { .. })));
//!
//! request.body_mut().push(b'\n');
//! // my_receiver(stale) and my_receiver(request) answer 400
//! # assert_eq!(verify(&request, now), Err(VerifyError::Mismatch));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Test the code around the verifier with requests that are good, stale, signed with another secret,
//! or changed on the way. With the feature `events`, `event::NewEvent` creates the body of any event
//! and `event::EventBody::signed_request` the request; [`signed_request`] takes any other body.

use alloc::vec::Vec;
use core::fmt;

use http::{HeaderValue, Method, Request};

use super::headers::{DeliveryHeader, is_header_text};
use super::signer::Signer;
use crate::Timestamp;

/// Creates a delivery with any body, which need not be an event: a POST with the five headers, to
/// the URI `/`.
///
/// For an event, use `EventBody::signed_request`.
///
/// # Errors
/// Returns an error if the type or the id is empty or not visible ASCII.
pub fn signed_request(
    signer: &Signer,
    event_type: &str,
    event_id: &str,
    body: &[u8],
    now: Timestamp,
) -> Result<Request<Vec<u8>>, HeaderTextError> {
    let value = |header, text: &str| match HeaderValue::from_str(text) {
        Ok(value) if is_header_text(text) => Ok(value),
        _ => Err(HeaderTextError { header }),
    };
    let event_type = value(DeliveryHeader::Event, event_type)?;
    let event_id = value(DeliveryHeader::Delivery, event_id)?;
    let mut request = Request::new(body.into());
    *request.method_mut() = Method::POST;
    *request.headers_mut() = signer.headers(event_type, event_id, body, now);
    Ok(request)
}

/// Says that no header can carry an event type or id: it is empty or not visible ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeaderTextError {
    /// The header that the text was meant for.
    pub header: DeliveryHeader,
}

impl fmt::Display for HeaderTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "text for the {} header is empty or not visible ASCII", self.header)
    }
}

impl core::error::Error for HeaderTextError {}
