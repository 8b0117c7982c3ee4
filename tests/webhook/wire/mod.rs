//! Who signed what, and how it is refused.

use call_assistant::Timestamp;
use call_assistant::webhook::{Signer, Verifier, testing};
use http::Request;

mod answers;
#[cfg(feature = "events")]
mod compose;
#[cfg(feature = "events")]
mod events;
#[cfg(feature = "explain")]
mod explain;
mod headers;
#[cfg(feature = "std")]
mod interop;
mod signature_text;
mod signing;
mod signing_secret;
mod vectors;
mod window;

const NOW: i64 = 1_767_225_600;

#[track_caller]
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix(seconds).unwrap()
}

pub(crate) use support::secret;

pub(crate) fn signer() -> Signer {
    Signer::new(secret("whsec_test"))
}

pub(crate) fn verifier() -> Verifier {
    Verifier::new(secret("whsec_test"))
}

/// A delivery of this event, id and body.
#[track_caller]
pub(crate) fn signed(event_type: &str, id: &str, body: &[u8]) -> Request<Vec<u8>> {
    testing::signed_request(&signer(), event_type, id, body, at(NOW)).unwrap()
}

#[cfg(feature = "events")]
#[track_caller]
pub(crate) fn verified(request: &Request<Vec<u8>>) -> call_assistant::webhook::Verified<'_> {
    static VERIFIER: std::sync::LazyLock<Verifier> = std::sync::LazyLock::new(verifier);
    VERIFIER.verify(request.headers(), request.body(), at(NOW)).unwrap()
}
