//! Runs the whole service in memory, for the integration tests of a customer's program.
//!
//! ```
//! # use call_assistant::rest::{ListCalls, client::{FlowError, Step}};
//! # use http::{Request, Response};
//! # fn copy_calls(
//! #     client: &Client,
//! #     mut send: impl FnMut(Request<()>) -> Response<Vec<u8>>,
//! # ) -> Result<Vec<Call>, FlowError> {
//! #     let (mut flow, mut now, mut copy) = (client.pages(ListCalls::new()), Timestamp::UNIX_EPOCH, vec![]);
//! #     loop {
//! #         match flow.next([0; 8], now) {
//! #             Step::Send { request, ticket, .. } => flow.report(ticket, Ok::<_, &str>(send(request)), now),
//! #             Step::Wait(until) => now = until,
//! #             Step::Store(batch) => { copy.extend(batch.calls.clone()); flow.stored(); }
//! #             Step::Done(result) => return result.map(|()| copy),
//! #         }
//! #     }
//! # }
//! use call_assistant::{Timestamp, id::CallId, model::Call};
//! use call_assistant::rest::{client::{Action, Client}, testing::Service};
//!
//! let now = Timestamp::from_unix(1_767_225_600).unwrap();
//! let client = Client::new("https://api.example.com", "service_test_kept-where-secrets-are")?;
//! let mut service = Service::new(client.key(), now);
//! service.add(Call::new(CallId::parse("call_1")?, now, now));
//!
//! let copy = copy_calls(&client, |request| service.respond(&request))?; // your program
//! assert_eq!(copy.len(), 1);
//! service.keys[0].revoke(now);
//! let error = copy_calls(&client, |request| service.respond(&request)).unwrap_err();
//! assert_eq!(error.action(), Action::ReplaceKey);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The answers come from [`rest::server`](super::server). Therefore every check, rate limit and cursor is
//! real. There is no socket, and time is virtual. For answers that a working service does not return, see
//! [`client::testing`](super::client::testing).
//!
//! # Virtual time
//!
//! The field [`now`](Service::now) is the time at the service. A test that runs a flow itself sets this field
//! and does not sleep:
//!
//! ```
//! use call_assistant::{Timestamp, id::CallId, model::Call};
//! use call_assistant::rest::client::{CallSync, Client, Step};
//! use call_assistant::rest::testing::Service;
//!
//! let client = Client::new("https://api.example.com", "service_test_kept-where-secrets-are")?;
//! let mut service = Service::new(client.key(), Timestamp::from_unix(1_767_225_600).unwrap());
//! service.add(Call::new(CallId::parse("call_1")?, service.now, service.now));
//!
//! let (mut flow, mut copy) = (client.sync(CallSync::new()), Vec::new()); // or your own program
//! loop {
//!     match flow.next([0; 8], service.now) {
//!         Step::Send { request, ticket, .. } => {
//!             flow.report(ticket, Ok::<_, &str>(service.respond(&request)), service.now);
//!         }
//!         Step::Wait(until) => service.now = until,
//!         Step::Store(batch) => {
//!             copy.extend(batch.calls.clone());
//!             flow.stored();
//!         }
//!         Step::Done(result) => break result?,
//!     }
//! }
//! assert_eq!(copy.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::vec;
use alloc::vec::Vec;

use http::header::HOST;
use http::{HeaderValue, Request, Response};

use super::server::{
    AccountStatus, Authorized, CallRow, CursorKeys, RateWindows, Received, Rejection, RequestHead,
    StoredKey,
};
use super::{ApiKey, Mode, Scope};
use crate::Timestamp;
use crate::id::{AccountId, CredentialId, RequestId};
use crate::model::{Account, Call};

/// A service for one account, with its calls in memory. See the [module's page](self).
///
/// A test may change the fields, for example to revoke a key, end the subscription or advance the
/// time.
#[derive(Debug)]
#[non_exhaustive]
pub struct Service {
    /// The time at the service.
    pub now: Timestamp,
    /// The account. At first, its id is `acct_test`.
    pub account: Account,
    /// The account's status. At first, the subscription is active and the plan includes the API.
    pub status: AccountStatus,
    /// The keys. At first, there is one key with both scopes. Keys of another account are refused.
    pub keys: Vec<StoredKey>,
    /// Whether the service's store is down. If the store is down, each request for an operation gets 500. A
    /// request with an invalid `Host` still gets 400, a request for an unknown path gets 404, and a request
    /// with a wrong method gets 405.
    pub is_down: bool,
    mode: Mode,
    calls: Vec<CallRow>,
    rates: RateWindows,
    cursors: CursorKeys,
    requests: u128,
}

impl Service {
    /// Creates a service that has no calls and accepts one key. Pass
    /// [`Client::key`](super::client::Client::key).
    #[must_use]
    #[expect(clippy::expect_used, reason = "the id is valid")]
    pub fn new(key: &ApiKey, now: Timestamp) -> Self {
        let id = AccountId::parse("acct_test").expect("the id is valid");
        let credential = CredentialId::from_random([0x7e; 16]);
        let scopes = vec![Scope::AccountRead, Scope::CallsRead];
        let key = StoredKey::new(credential, id.clone(), key, now).with_scopes(scopes);
        Self {
            now,
            status: AccountStatus {
                account_id: id.clone(),
                closing: false,
                subscribed: true,
                api_in_plan: true,
            },
            mode: key.mode,
            keys: vec![key],
            is_down: false,
            account: Account::new(id, "UTC"),
            calls: Vec::new(),
            rates: RateWindows::new(16),
            cursors: CursorKeys::new(1, [0x7c; 32]),
            requests: 0,
        }
    }

    /// Adds a call to the account. From the next request on, each key with the same mode as the first key can
    /// read the call.
    pub fn add(&mut self, call: Call) {
        let account_id = self.account.id.clone();
        self.calls.push(CallRow { account_id, mode: self.mode, call });
        self.calls.sort_by(|a, b| b.call.list_order().cmp(&a.call.list_order()));
    }

    /// Returns the service's response to a request. The base URL of the client must not have a path. In an
    /// axum handler, return `response.map(Body::from)`.
    pub fn respond(&mut self, request: &Request<()>) -> Response<Vec<u8>> {
        let (mut head, ()) = request.clone().into_parts();
        let host = head.uri.host().and_then(|host| HeaderValue::from_str(host).ok());
        if let Some(host) = host {
            head.headers.entry(HOST).or_insert(host); // as an HTTP client does
        }
        self.serve(&RequestHead::from_parts(&head)).unwrap_or_else(Rejection::into_response)
    }

    fn serve(&mut self, head: &RequestHead<'_>) -> Result<Response<Vec<u8>>, Rejection> {
        self.requests = self.requests.wrapping_add(1);
        let received = Received::new(head, RequestId::from_random(self.requests.to_be_bytes()))?;
        if self.is_down {
            return Err(received.internal_error());
        }
        let known = |key: &&mut StoredKey| {
            key.account_id == self.account.id && received.digest() == Some(&key.digest)
        };
        let mut key = self.keys.iter_mut().find(known);
        let identified = received.identify(key.as_deref(), self.now)?;
        if let Some(key) = &mut key {
            key.last_used_at = Some(identified.used_at());
        }
        let admitted = identified.admit(&mut self.rates, self.now)?;
        match admitted.authorize(&self.status, &self.cursors)? {
            Authorized::Account(query) => query.answer(self.account.clone()),
            Authorized::Calls(query) => {
                let rows = self.calls.iter().filter(|row| query.matches(row));
                let rows = rows.take(query.rows_to_read()).cloned().collect();
                query.answer(rows)
            }
            Authorized::Call(query) => {
                let row = self.calls.iter().find(|row| query.matches(row));
                query.answer(row.cloned())
            }
        }
    }
}
