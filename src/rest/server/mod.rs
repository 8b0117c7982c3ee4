//! Answers requests of the REST API: checks keys, limits rates, writes pages and cursors.
//!
//! ```
//! use call_assistant::id::RequestId;
//! use call_assistant::rest::server::{Received, RequestHead};
//!
//! let head = RequestHead::new("GET", "/v1/calls/", None).with_host(b"api.example.com");
//! let rejection = Received::new(&head, RequestId::from_random([1; 16])).unwrap_err();
//! assert_eq!(rejection.reason().to_string(), "no operation has this path"); // for the log
//! assert_eq!(rejection.into_response().status(), 404); // for the caller
//! ```
//!
//! # One request
//!
//! A request goes through these states. Each step consumes a state and returns the next state:
//!
//! ```text
//! RequestHead
//!     │ Received::new                400 Host, 404 unknown path, 405
//! Received
//!     │ identify      <── key        401
//! Identified
//!     │ admit         <── rate       429
//! Admitted
//!     │ authorize     <── account    403, 402, 400
//! Authorized
//!     │ answer        <── rows       404 no such call
//! Response
//! ```
//!
//! A step that fails returns a [`Rejection`], which is a complete response. Between two steps, the host looks
//! up the data for the next step. The functions of the current state return what to look up, and for which
//! account. If a look-up fails, answer with the state's `internal_error` (500). Write each look-up as a
//! separate statement before the next step, which consumes the state. A look-up may be `async`, because the
//! states own their data. [`RequestHead::from_parts`] reads the head of an [`http::Request`]. The following
//! program is a whole host:
//!
//! ```
//! use std::collections::HashMap;
//! use std::time::Duration;
//!
//! use call_assistant::id::{AccountId, CallId, CredentialId, RequestId};
//! use call_assistant::model::{Account, Call};
//! use call_assistant::rest::server::{
//!     AccountStatus, Authorized, CallRow, CursorKeys, KeyDigest, RateWindows, Received,
//!     Rejection, RequestHead, StoredKey,
//! };
//! use call_assistant::rest::{ApiKey, Mode, Scope};
//! use call_assistant::{Product, Timestamp};
//! use http::Response;
//!
//! /// A host with everything in memory. One with a database has other look-ups.
//! struct Host {
//!     keys: HashMap<KeyDigest, StoredKey>,
//!     rates: RateWindows,
//!     accounts: HashMap<AccountId, (Account, AccountStatus)>,
//!     calls: Vec<CallRow>, // newest first
//!     cursors: CursorKeys,
//! }
//!
//! impl Host {
//!     fn serve(
//!         &mut self,
//!         head: &RequestHead<'_>,
//!         request_id: RequestId,
//!         now: Timestamp,
//!     ) -> Result<Response<Vec<u8>>, Rejection> {
//!         let received = Received::new(head, request_id)?;
//!
//!         let mut key = received.digest().and_then(|digest| self.keys.get_mut(digest));
//!         let identified = received.identify(key.as_deref(), now)?;
//!         if let Some(key) = &mut key {
//!             // At most one write a minute: `true` says that it is due.
//!             let _ = key.note_use(Duration::from_secs(60), identified.used_at());
//!         }
//!
//!         let admitted = identified.admit(&mut self.rates, now)?;
//!
//!         let found = self.accounts.get(admitted.account_id());
//!         let (account, status) = found.ok_or_else(|| admitted.internal_error())?;
//!         match admitted.authorize(status, &self.cursors)? {
//!             Authorized::Account(query) => query.answer(account.clone()),
//!             Authorized::Calls(query) => {
//!                 let rows = self.calls.iter().filter(|row| query.matches(row));
//!                 let rows = rows.take(query.rows_to_read()).cloned().collect();
//!                 query.answer(rows)
//!             }
//!             Authorized::Call(query) => {
//!                 let row = self.calls.iter().find(|row| query.matches(row));
//!                 query.answer(row.cloned())
//!             }
//!             new => Err(new.internal_error()), // an operation of a later version
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let now = Timestamp::from_unix(1_784_887_200).ok_or("out of range")?;
//! let account_id = AccountId::parse("acct_1")?;
//! let key = ApiKey::from_random(&Product::default(), Mode::Test, [7; 32]);
//! let stored = StoredKey::new(CredentialId::parse("cred_1")?, account_id.clone(), &key, now)
//!     .with_scopes([Scope::AccountRead, Scope::CallsRead]);
//! let status = AccountStatus {
//!     account_id: account_id.clone(),
//!     closing: false,
//!     subscribed: true,
//!     api_in_plan: true,
//! };
//! let call = Call::new(CallId::parse("call_1")?, now, now);
//! let mut host = Host {
//!     keys: HashMap::from([(stored.digest, stored)]),
//!     rates: RateWindows::new(1_000),
//!     accounts: HashMap::from([(
//!         account_id.clone(),
//!         (Account::new(account_id.clone(), "Europe/Oslo"), status),
//!     )]),
//!     calls: vec![CallRow { account_id, mode: Mode::Test, call }],
//!     cursors: CursorKeys::new(1, [0x7c; 32]),
//! };
//!
//! let mut get = |path, authorization: &str| {
//!     let head = RequestHead::new("GET", path, None)
//!         .with_host(b"api.example.com")
//!         .with_authorization(authorization.as_bytes());
//!     host.serve(&head, RequestId::from_random([1; 16]), now).unwrap_or_else(|rejection| {
//!         eprintln!("{rejection}"); // the reason, which the response does not contain
//!         rejection.into_response()
//!     })
//! };
//!
//! let bearer = format!("Bearer {}", key.reveal());
//! let response = get("/v1/account", &bearer);
//! assert_eq!(response.status(), 200);
//! assert!(response.body().ends_with(br#""livemode":false}"#));
//! assert_eq!(get("/v1/calls", &bearer).status(), 200);
//! assert_eq!(get("/v1/calls/call_1", &bearer).status(), 200);
//! assert_eq!(get("/v1/calls/call_2", &bearer).status(), 404);
//! assert_eq!(get("/v1/account", "Bearer service_test_stolen").status(), 401);
//! # Ok(())
//! # }
//! ```
//!
//! # Order of checks
//!
//! The first check that fails decides the response. The [protocol](crate::guide::protocol#order-of-refusals)
//! lists all checks in order.
//!
//! The first three checks (`Host`, path, method) need no look-up. A sender without a valid key learns nothing
//! about later checks. An account scheduled for deletion is reported before a missing subscription, plan or
//! scope. Each request that passes the rate limit counts against the limit.
//!
//! # What does not compile
//!
//! A request cannot be authorised before its credential is known and the request is counted:
//!
//! ```compile_fail,E0599
//! # use call_assistant::rest::server::{AccountStatus, CursorKeys, Received};
//! fn hasty(received: Received, status: &AccountStatus, cursors: &CursorKeys) {
//!     let _ = received.authorize(status, cursors);
//! }
//! ```
//!
//! Calls cannot be looked up before the request is authorised, because only an authorised request has a
//! query:
//!
//! ```compile_fail,E0308
//! # use call_assistant::rest::server::{Admitted, CallRow, CallsQuery};
//! # fn look_up(query: &CallsQuery) -> Vec<CallRow> { vec![] }
//! fn hasty(admitted: &Admitted) -> Vec<CallRow> {
//!     look_up(admitted) // it takes a `&CallsQuery`
//! }
//! ```
//!
//! No code can create or change a query, so every query belongs to a credential's account:
//!
//! ```compile_fail,E0451
//! # use call_assistant::id::CallId;
//! # use call_assistant::rest::server::CallQuery;
//! fn forged(query: CallQuery, call_id: CallId) -> CallQuery {
//!     CallQuery { call_id, ..query }
//! }
//! ```
//!
//! No request is answered twice:
//!
//! ```compile_fail,E0382
//! # use call_assistant::rest::server::CallQuery;
//! fn twice(query: CallQuery) {
//!     let _ = query.answer(None);
//!     let _ = query.answer(None);
//! }
//! ```
//!
//! Every response has the id of its request, even the response of a failing host:
//!
//! ```compile_fail,E0061
//! # use call_assistant::rest::server::Rejection;
//! let _ = Rejection::internal_error();
//! ```
//!
//! ```compile_fail,E0061
//! # use call_assistant::{model::Account, rest::ApiResponse};
//! fn nameless(account: &Account) -> http::Response<Vec<u8>> {
//!     account.to_response()
//! }
//! ```
//!
//! # What a host still has to do
//!
//! - Send the status, the headers and the body of each response unchanged. Add no CORS headers. The headers
//!   include `Content-Length`, even in the response to a `HEAD`.
//! - Log the [reason](Rejection::reason) of each rejection with the request id.
//! - Look up keys by [`Received::digest`] for each request. A cache of keys would delay revocations, but a
//!   revocation must take effect at once.
//! - Take `now` once for each request. If a function in [SQL](RateWindows#in-sql) counts the requests, the
//!   function uses the database's clock. It returns the wait as a duration, so the clocks of the host and the
//!   database may differ.
//! - Limit the size of requests and the time to receive them. If the HTTP library cannot parse a request, it
//!   answers 400, 408 or 431, without a JSON body or a request id. This module answers every request that the
//!   library can parse.
//!
//! # What may grow
//!
//! A new operation, parameter or [`RejectionReason`] is not a breaking change. If a host does not know an
//! operation, it answers with [`Authorized::internal_error`]. For types such as [`KeyState`] and [`CallRow`],
//! a new variant or field is a breaking change. The documentation of these types gives the reason after
//! `Closed:`.

mod account_status;
mod call_row;
mod cursor;
mod exchange;
mod metrics;
mod rate;
mod rejection;
mod stored_key;

pub use account_status::AccountStatus;
pub use call_row::{CallRow, RowsReason};
pub use cursor::{Cursor, CursorError, CursorKeys, KeyIdTakenError};
pub use exchange::{
    AccountQuery, Admitted, Authorized, CallQuery, CallsQuery, Identified, Received, RequestHead,
};
pub use metrics::ApiMetrics;
pub use rate::{RateLimitError, RateWindows};
pub use rejection::{Rejection, RejectionReason};
pub use stored_key::{KeyDigest, KeyState, StoredKey};

/// The OpenAPI 3.1 document of the REST API and its webhooks, in JSON.
///
/// ```
/// let document: serde_json::Value = serde_json::from_str(call_assistant::rest::server::OPENAPI)?;
/// assert_eq!(document["openapi"], "3.1.0");
/// assert_eq!(document["paths"]["/v1/account"]["get"]["operationId"], "get_account");
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// The document describes every event, and every operation with its parameters, bounds and errors. No path of
/// the API serves this document.
pub const OPENAPI: &str = include_str!("../openapi.json");
