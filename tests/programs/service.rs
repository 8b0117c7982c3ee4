//! The service for the customer's programs: `serve_api`, called without a socket.

use core::time::Duration;
use std::cell::{Cell, RefCell};

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId, EventId};
use call_assistant::model::Call;
use call_assistant::rest::client::Client;
use call_assistant::rest::server::{CallRow, CursorKeys, RateWindows, RequestHead};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use http::{Request, Response};

use crate::program::serve_api::database::{self, Database};
use crate::program::serve_api::serve;

pub(crate) struct Service {
    pub(crate) db: Database,
    pub(crate) cursors: CursorKeys,
    pub(crate) now: Timestamp,
    rates: RefCell<RateWindows>,
    pub(crate) requests: Cell<usize>,
}

/// A ping that was created then.
pub(crate) fn ping(now: Timestamp) -> EventBody {
    let (id, account) = (EventId::from_random([7; 16]), AccountId::parse("acct_1").unwrap());
    let version = ApiVersion::parse("2026-01-15").unwrap();
    NewEvent::new(id, account, version, Origin::voice(), now).ping("hello").unwrap()
}

impl Service {
    /// A service with one call, `call_1`, and a client that has its key.
    pub(crate) fn new() -> (Self, Client) {
        let now = Timestamp::parse("2026-03-01T12:00:00Z").unwrap();
        let (db, key) = Database::new([7; 32], now).unwrap();
        let (cursors, rates) = (database::cursor_keys([0x7c; 32]), RateWindows::new(1_000).into());
        let client = Client::new("https://api.example.com", key.reveal()).unwrap();
        (Self { db, cursors, now, rates, requests: Cell::new(0) }, client)
    }

    /// Adds calls on top of the list, `call_N` for each number.
    pub(crate) fn add(&mut self, numbers: impl IntoIterator<Item = usize>) {
        for number in numbers {
            let at = self.now.saturating_add(Duration::from_secs(number.try_into().unwrap()));
            let id = CallId::parse(&format!("call_{number}")).unwrap();
            let template = &self.db.calls[0];
            let (account_id, mode) = (template.account_id.clone(), template.mode);
            self.db.calls.insert(0, CallRow { account_id, mode, call: Call::new(id, at, at) });
        }
    }

    /// Answers a request, as the network would bring it here.
    pub(crate) fn send(&self, request: Request<()>) -> Result<Response<Vec<u8>>, &'static str> {
        self.requests.set(self.requests.get() + 1);
        let (mut head, ()) = request.into_parts();
        let host = head.uri.host().ok_or("no host")?.parse().unwrap();
        head.headers.insert("host", host); // as an HTTP client does
        let head = RequestHead::from_parts(&head);
        let rates = &mut self.rates.borrow_mut();
        let answer = serve(&self.db, rates, &self.cursors, &head, self.now);
        Ok(answer.unwrap_or_else(|rejection| rejection.into_response()))
    }
}
