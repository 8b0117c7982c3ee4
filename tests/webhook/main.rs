//! Webhooks between the service and its customers: who signed what, and how it is refused.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

use call_assistant::time::Timestamp;
use call_assistant::webhook::{Signer, SigningSecret, Verifier};

mod answers;
#[cfg(feature = "events")]
mod compose;
#[cfg(feature = "events")]
mod events;
#[cfg(feature = "events")]
mod explain;
mod headers;
#[cfg(feature = "std")]
mod interop;
mod rotation;
mod secret;
mod signature_text;
mod signing;
mod vectors;
mod window;

const NOW: i64 = 1_767_225_600;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix(seconds).unwrap()
}

fn secret(text: &str) -> SigningSecret {
    SigningSecret::parse(text).unwrap()
}

fn signer() -> Signer {
    Signer::new(secret("whsec_test"))
}

fn verifier() -> Verifier {
    Verifier::new(secret("whsec_test"))
}
