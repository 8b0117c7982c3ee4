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

mod check;
mod copy;
mod killing;
mod kit;
mod receiver;
mod relay;
mod service;
mod short;
mod simulate;
mod sync;
mod together;
mod tour;
mod verify;

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant::webhook::{Signer, SigningSecret};
use http::Request;
use testing::running::{Running, eventually, exchange, lines, run};

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

/// Starts a receiver or a relay, and learns where it listens.
fn listening(running: Running) -> (Running, String) {
    let line = running.logged("listening on http://");
    let (_, address) = line.rsplit_once("http://").unwrap();
    let address = address.to_owned();
    (running, address)
}

/// Sends a delivery. Returns the status of the answer, if there is one.
fn send(to: &str, request: &Request<Vec<u8>>) -> Option<u16> {
    let (body, headers) = (request.body(), lines(request.headers()));
    let start = format!("POST /hooks HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n");
    let head = format!("{start}content-length: {}\r\n{headers}\r\n", body.len());
    exchange(to, &[head.as_bytes(), body].concat()).map(|answer| answer.status)
}

/// Sends until it is acknowledged, as a service does: 503 says that storing it took too long.
#[track_caller]
fn accepted(to: &str, request: &Request<Vec<u8>>) {
    eventually("it is stored", || match send(to, request) {
        Some(204) => Some(()),
        status => {
            assert_eq!(status, Some(503));
            None
        }
    });
}

/// Runs a program with each of these command lines, of words with a space in between: it says what is wrong with it,
/// and no secret. `SECRET` and `KEY` stand for those.
#[track_caller]
fn refused(program: impl Fn() -> Command, cases: &[(&str, &str)]) {
    for (line, words) in cases {
        let arguments = line.split_terminator(' ').map(|word| match word {
            "SECRET" => SECRET,
            "KEY" => killing::KEY,
            word => word,
        });
        let told = run(program().args(arguments), b"").is(2, words);
        assert!(!told.stderr.contains("no-output-may-show"), "{line}");
    }
}

/// Says when a test is over, also when it fails: whoever waits for that is not waited for.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
