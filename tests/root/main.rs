//! The words everything else speaks: times, ids, names, errors, credentials, models, JSON.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod ids;
mod json;
mod metrics;
mod models;
mod names;
mod secrets;
mod stored;
mod time;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};

/// Reads an instant.
#[track_caller]
fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A ping that was created then.
fn ping(created_at: Timestamp) -> EventBody {
    let (id, account) = (EventId::parse("evt_1").unwrap(), AccountId::parse("acct_1").unwrap());
    let version = ApiVersion::parse("2026-01-15").unwrap();
    NewEvent::new(id, account, version, Origin::voice(), created_at).ping("It works.").unwrap()
}
