//! What the tests of several rooms share: instants, secrets, [`dice`], and what simulations need.
//!
//! The crate asks for no feature of the library, so that the tests of each set of features are of
//! that set and no other.
#![allow(clippy::arithmetic_side_effects, clippy::as_conversions)]
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::SigningSecret;
use serde_json::Value;

pub mod dice;
pub mod simulation;

/// 2026-01-01T00:00:00Z: where virtual time begins.
pub fn start() -> Timestamp {
    Timestamp::from_unix(1_767_225_600).unwrap()
}

/// This many seconds after the start.
#[track_caller]
pub fn seconds(seconds: u64) -> Timestamp {
    start().checked_add(Duration::from_secs(seconds)).unwrap()
}

/// This many milliseconds after the start.
#[track_caller]
pub fn millis(millis: u64) -> Timestamp {
    start().checked_add(Duration::from_millis(millis)).unwrap()
}

/// This many nanoseconds after the start.
#[track_caller]
pub fn nanos(nanos: u64) -> Timestamp {
    start().checked_add(Duration::from_nanos(nanos)).unwrap()
}

/// Reads a signing secret.
#[track_caller]
pub fn secret(text: &str) -> SigningSecret {
    SigningSecret::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the cases of a file of the corpus, `tests/vectors`.
#[track_caller]
pub fn corpus(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).unwrap();
    assert_eq!(file["format"], 1);
    let cases = file["cases"].as_array().unwrap().clone();
    assert!(cases.len() > 20, "{} cases", cases.len());
    cases
}

/// Calls `each` with every order of these items, those before `from` aside.
pub fn permute<T>(items: &mut [T], from: usize, each: &mut impl FnMut(&[T])) {
    if from == items.len() {
        return each(items);
    }
    for other in from..items.len() {
        items.swap(from, other);
        permute(items, from + 1, each);
        items.swap(from, other);
    }
}
