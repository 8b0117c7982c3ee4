//! The customer's programs among the examples, as they are run: real processes, real sockets, real
//! files, and `kill -9` in the middle.
//!
//! `cargo test` builds the examples first. After `cargo test --test tools` alone, they are those
//! of the last `cargo build --examples`.

#![cfg(unix)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod copy;
mod http;
mod killing;
mod program;
mod receiver;
mod relay;
mod service;
mod short;
mod simulate;
mod sync;
mod together;
mod tour;
mod verify;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant::webhook::{Signer, SigningSecret};

const SECRET: &str = "whsec_the-one-that-no-output-may-show";

fn signer() -> Signer {
    Signer::new(SigningSecret::parse(SECRET).unwrap())
}

fn now() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now())
}

fn new_event(id: &str) -> NewEvent {
    let account = AccountId::parse("acct_1").unwrap();
    let version = ApiVersion::parse("2026-01-15").unwrap();
    NewEvent::new(EventId::parse(id).unwrap(), account, version, Origin::voice(), now())
}

fn ping(id: &str) -> EventBody {
    new_event(id).ping(format!("this is {id}")).unwrap()
}
