//! Creates signed requests for the tests of a receiver.
//!
//! ```
//! use core::time::Duration;
//! use call_assistant::Timestamp;
//! use call_assistant::webhook::{Signer, SigningSecret, testing};
//! # use call_assistant::webhook::{Verifier, VerifyError};
//!
//! let secret = SigningSecret::parse("whsec_test")?;
//! let signer = Signer::new(secret.clone());
//! let now = Timestamp::from_unix(1_767_225_600).unwrap();
//! let body = br#"{"id":"evt_1","type":"ping","created_at":"2026-01-01T00:00:00+00:00",
//!     "api_version":"2026-01-15","account_id":"acct_1","origin":null,"data":{"message":"hello"}}"#;
//!
//! let mut request = testing::signed_request(&signer, "ping", "evt_1", body, now)?;
//! *request.uri_mut() = "/hooks".parse()?; // for the test of a router
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
//! Test the code around the verifier with requests that are valid, stale, signed with another
//! secret, or changed in transit. With the feature `events`, `event::NewEvent` creates the body of
//! each known type of event, and `event::EventBody::signed_request` creates the request, whose
//! headers agree with the body. If this version of the crate does not know the type, pass the event
//! as JSON to `event::EventBody::from_stored`. [`signed_request`] accepts any body, any type and
//! any id.

use alloc::vec::Vec;

use http::{HeaderValue, Method, Request};

use super::signer::Signer;
use crate::Timestamp;
use crate::text::{TextError, check_present, check_visible};

/// Creates a POST to the URI `/` with the five headers of a delivery. The body need not be an
/// event.
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
) -> Result<Request<Vec<u8>>, TextError> {
    let event_type = value("event type", event_type)?;
    let event_id = value("event id", event_id)?;
    let mut request = Request::new(body.into());
    *request.method_mut() = Method::POST;
    *request.headers_mut() = signer.headers(event_type, event_id, body, now);
    Ok(request)
}

#[expect(clippy::expect_used, reason = "visible ASCII is allowed in headers")]
fn value(what: &'static str, text: &str) -> Result<HeaderValue, TextError> {
    check_present(what, text)?;
    check_visible(what, text)?;
    Ok(HeaderValue::from_str(text).expect("visible ASCII"))
}
