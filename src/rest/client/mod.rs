//! The customer's side of the REST API: requests, responses, pages, retries, and a sync.
//!
//! ```
//! use call_assistant::rest::ListCalls;
//! use call_assistant::rest::client::{Client, Step};
//! # use call_assistant::rest::client::testing;
//! # let (now, random) = (|| call_assistant::Timestamp::UNIX_EPOCH, || [0; 8]);
//! # let sleep = |_| ();
//! # let send = |_, _| Ok::<_, &str>(testing::pages([], 1).remove(0));
//! # let save = |_: &call_assistant::rest::client::Batch<_>| Ok::<_, std::io::Error>(());
//!
//! let client = Client::new("https://api.example.com", "service_live_kept-where-secrets-are")?;
//! let mut flow = client.pages(ListCalls::new());
//! loop {
//!     match flow.next(random(), now()) {
//!         Step::Send { request, time_limit, ticket } => {
//!             flow.report(ticket, send(request, time_limit), now()); // an answer, or none
//!         }
//!         Step::Wait(until) => sleep(until.since(now())),
//!         Step::Store(batch) => {
//!             save(batch)?; // `calls`, and `unreadable`: what this version cannot read
//!             flow.stored();
//!         }
//!         Step::Done(result) => break result?, // the error says who must act
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This module does no I/O. A [`Flow`] decides on the next step. The flow handles the retries, keeps
//! the pace below the rate limit, reads page after page, and restarts a list if necessary. Your program
//! provides `now`, `random`, `sleep` and `send`. The function `send` uses an HTTP client of your
//! choice. Copy `send` from one of [two examples](#http-clients) below. A `send` that loses a status,
//! the headers or the time limit compiles, but is wrong. [`guide::reading`](crate::guide::reading)
//! describes the rules for the loop that runs a flow. The [protocol](crate::guide::protocol) describes
//! the API's promises.
//!
//! | for | use |
//! |---|---|
//! | one operation | [`Client::fetch`] |
//! | all pages of a list | [`Client::pages`] |
//! | the calls that started in a period | [`CallPages::from_period`] |
//! | a copy of all calls, kept up to date | [`Client::sync`], [`Client::sync_of`] |
//! | calls that also arrive as events | [`CallSync::take_call`], [`Flow::continue_from`] |
//! | errors | [`FlowError::action`], [`ClientError::action`]: who must act |
//! | a loop of your own | [`Client::request`] and [`Client::read`], [`Retry`], [`Pace`], [`CallPages`], [`CallSync`] |
//! | HTTP clients without the `http` crate | [`Client::url`], [`ResponseHead`], [`Flow::answered`] |
//! | the tests of your program | [`testing`] |
//!
//! # A copy of all calls
//!
//! Store each batch and the state after this batch in one transaction. If the program is then killed at
//! any point, the next run continues from the state stored last. No call is lost or returned twice.
//!
//! ```
//! use call_assistant::rest::client::{CallSync, Client, Step};
//! # use call_assistant::rest::client::{Batch, testing};
//! # use call_assistant::{id::CallId, model::Call};
//! # use std::cell::{Cell, RefCell};
//! # let (clock, random) = (Cell::new(call_assistant::Timestamp::UNIX_EPOCH), || [0; 8]);
//! # let now = || clock.get();
//! # let sleep = |span| clock.set(now().saturating_add(span));
//! # let calls = ["call_1", "call_2"].map(|id| Call::new(CallId::parse(id).unwrap(), now(), now()));
//! # let mut answers = testing::pages(calls, 1).into_iter();
//! # let mut send = |_, _| answers.next().ok_or("none left");
//! # let file: RefCell<(Vec<CallId>, Option<String>)> = RefCell::default();
//! # let read_state = || file.borrow().1.clone();
//! # let store = |batch: &Batch<CallSync>, state: &str| {
//! #     let mut file = file.borrow_mut();
//! #     file.0.extend(batch.calls.iter().map(|call| call.id.clone()));
//! #     file.1 = Some(state.to_owned());
//! #     Ok::<(), Box<dyn std::error::Error>>(())
//! # };
//!
//! let state = match read_state() {
//!     Some(text) => serde_json::from_str(&text)?,
//!     None => CallSync::new(), // the first run
//! };
//! let client = Client::new("https://api.example.com", "service_live_kept-where-secrets-are")?;
//! let mut flow = client.sync(state);
//! loop {
//!     match flow.next(random(), now()) {
//!         Step::Send { request, time_limit, ticket } => {
//!             flow.report(ticket, send(request, time_limit), now());
//!         }
//!         Step::Wait(until) => sleep(until.since(now())),
//!         Step::Store(batch) => {
//!             let state = serde_json::to_string(&batch.next)?;
//!             store(batch, &state)?; // the calls, the unreadable items and the state
//!             flow.stored();
//!         }
//!         Step::Done(result) => break result?, // up to date: create the next flow in a while
//!     }
//! }
//! # assert_eq!(file.borrow().0.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The program [`copy`](https://docs.rs/crate/call-assistant/latest/source/examples/copy.rs) runs this
//! loop with the HTTP client ureq, in 60 lines. A test kills this program at 240 points, and finds no
//! call lost or repeated. To stop copying early, drop the flow, and cancel the pending request or
//! sleep.
//!
//! # An item that cannot be read
//!
//! Each item of a [page](crate::model::CallList) is a [`ListedCall`](crate::model::ListedCall): a
//! [`Call`](crate::model::Call) or an [`UnreadableCall`](crate::model::UnreadableCall). An
//! `UnreadableCall` contains the whole item, and the reason why the item cannot be read. An unreadable
//! item does not stop a page or a sync, and is not skipped. [`Batch::unreadable`] contains the
//! unreadable items of a batch.
//!
#![doc = include_str!("../../guide/send.md")]

mod error;
mod flow;
mod list;
mod pace;
mod request;
mod response_head;
mod retry;
mod retry_after;
pub mod testing;

pub use error::{Action, ClientError, ClientErrorReason};
pub use flow::{Flow, FlowTask, Progress, Step, Ticket};
pub use list::{Batch, CallPages, CallSync, FlowError, PagingError};
pub use pace::Pace;
pub use request::Client;
pub use response_head::ResponseHead;
pub use retry::Retry;
pub use retry_after::RetryAfter;
