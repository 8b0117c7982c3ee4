//! Serves the API from a database whose look-ups can fail.
//!
//! `cargo run --example serve_api --features service`

pub(crate) mod database;

use std::time::SystemTime;

use call_assistant::Timestamp;
use call_assistant::id::RequestId;
use call_assistant::rest::server::{Authorized, CursorKeys, RateWindows};
use call_assistant::rest::server::{Received, Rejection, RequestHead};
use database::Database;
use http::{Request, Response};

pub(crate) fn serve(
    db: &Database,
    rates: &mut RateWindows,
    cursors: &CursorKeys,
    head: &RequestHead<'_>,
    now: Timestamp,
) -> Result<Response<Vec<u8>>, Rejection> {
    let received = Received::new(head, RequestId::from_random(random()))?;
    let key = db.key(received.digest()).map_err(|_| received.internal_error())?;
    let identified = received.identify(key.as_ref(), now)?;
    let admitted = identified.admit(rates, now)?;
    let status = db.status(admitted.account_id()).map_err(|_| admitted.internal_error())?;
    match admitted.authorize(&status, cursors)? {
        Authorized::Account(query) => {
            let account = db.account(query.account_id()).map_err(|_| query.internal_error())?;
            query.answer(account)
        }
        Authorized::Calls(query) => {
            let rows = db.calls(&query).map_err(|_| query.internal_error())?;
            query.answer(rows)
        }
        Authorized::Call(query) => {
            let row = db.call(&query).map_err(|_| query.internal_error())?;
            query.answer(row)
        }
        new => Err(new.internal_error()), // an operation of a later version
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut db, key) = Database::new(random(), now())?;
    let (mut rates, cursors) = (RateWindows::new(1_000), database::cursor_keys(random()));
    for path in ["/v1/account", "/v1/calls", "/v1/calls/call_1", "/v1/calls/call_9", "down"] {
        db.down = path == "down";
        let request = Request::get(if db.down { "/v1/account" } else { path })
            .header("host", "api.example.com")
            .header("authorization", format!("Bearer {}", key.reveal()));
        let (head, ()) = request.body(())?.into_parts();
        let head = RequestHead::from_parts(&head);
        let answer = serve(&db, &mut rates, &cursors, &head, now());
        let response = answer.unwrap_or_else(|rejection| {
            eprintln!("{}: {}", rejection.request_id(), rejection.reason()); // not in the response
            rejection.into_response()
        });
        println!("{path}: {}", response.status());
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a host has a clock")]
fn now() -> Timestamp {
    SystemTime::now().into()
}

#[expect(clippy::expect_used, reason = "nothing can be kept secret without them")]
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}
