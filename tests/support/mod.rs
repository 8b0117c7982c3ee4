#![allow(dead_code)] // each test binary uses its own part
//! What the tests of several rooms share: instants, secrets, ids, and [`dice`].

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::SigningSecret;

#[cfg(feature = "events")]
pub(crate) mod dice;

/// 2026-01-01T00:00:00Z: where virtual time begins.
pub(crate) fn start() -> Timestamp {
    Timestamp::from_unix(1_767_225_600).unwrap()
}

/// This many seconds after the start.
#[track_caller]
pub(crate) fn seconds(seconds: u64) -> Timestamp {
    start().checked_add(Duration::from_secs(seconds)).unwrap()
}

/// This many nanoseconds after the start.
#[track_caller]
pub(crate) fn nanos(nanos: u64) -> Timestamp {
    start().checked_add(Duration::from_nanos(nanos)).unwrap()
}

/// Reads an instant.
#[cfg(feature = "events")]
#[track_caller]
pub(crate) fn instant(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Reads a signing secret.
#[track_caller]
pub(crate) fn secret(text: &str) -> SigningSecret {
    SigningSecret::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Some request's id.
#[cfg(feature = "events")]
pub(crate) fn request_id() -> call_assistant::id::RequestId {
    call_assistant::id::RequestId::from_random([9; 16])
}
