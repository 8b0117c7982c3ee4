//! The customer's side of the REST API: requests, responses, pages, retries, and a sync.
//!
//! ```
//! use call_assistant::rest::ListCalls;
//! use call_assistant::rest::client::{Client, Paging};
//! # use call_assistant::model::CallList;
//! # let send = |_: http::Request<()>| http::Response::new(CallList::new(vec![], None).to_json());
//!
//! let client = Client::new("https://api.example.com", "service_live_kept-where-secrets-are")?;
//! let mut next = Some(Paging::new(ListCalls::new()));
//! while let Some(paging) = next {
//!     let (head, body) = send(client.request(paging.list())?).into_parts();
//!     let page = client.read(paging.list(), &head, &body)?;
//!     page.calls().for_each(|call| println!("{} {:?}", call.id, call.summary));
//!     next = paging.after(&page)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here sends anything: `send` is the HTTP client of the host. See the
//! [protocol](crate::guide::protocol) for what the API promises.
//!
//! | for | use |
//! |---|---|
//! | requests and responses | [`Client`]; [`ResponseHead`] without the `http` crate |
//! | errors | [`ClientError::action`]: who must act; [`ClientError::is_transient`] |
//! | repeated requests | [`Retry`]; [`Pace`], so that a rate limit is never exceeded |
//! | all pages of a list | [`Paging`] |
//! | a copy of all calls, kept up to date | [`CallSync`] |
//!
//! # An item that cannot be read
//!
//! Each item of a [page](crate::model::CallList) is a [`ListedCall`](crate::model::ListedCall): a
//! [`Call`](crate::model::Call), or an [`UnreadableCall`](crate::model::UnreadableCall) that is
//! kept whole with the reason. Neither a page nor a sync stops at such an item, and neither skips
//! it: [`SyncStep::unreadable`] hands it to the host.
//!
//! # A copy of all calls
//!
//! A [`CallSync`] asks page by page, and [`Retry`] says when to ask again:
//!
//! ```
//! use call_assistant::rest::Quota;
//! use call_assistant::rest::client::{Action, CallSync, Client, ClientError, Pace};
//! use call_assistant::rest::client::{ResponseHead, Retry, RetryDecision};
//! # use call_assistant::model::CallList;
//! # let now = || call_assistant::Timestamp::UNIX_EPOCH;
//! # let random = || [0; 8];
//! # let sleep = |_| {};
//! # let mut answers = vec![
//! #     http::Response::new(CallList::new(vec![], None).to_json()),
//! #     http::Response::builder().status(500).body(Vec::new())?,
//! # ];
//! # let mut send = |_: http::Request<()>| answers.pop().ok_or(());
//! # let save = |_: &call_assistant::rest::client::SyncStep| {};
//! # let stored = CallSync::new();
//!
//! let client = Client::new("https://api.example.com", "service_live_kept-where-secrets-are")?;
//! let (retry, mut pace) = (Retry::new(), Pace::of(Quota::READS));
//! let (mut sync, mut tried, mut restarts) = (stored, 0, 0);
//! loop {
//!     sleep(pace.turn(now()));
//!     let query = sync.query();
//!     let error = match send(client.request(&query)?).map(http::Response::into_parts) {
//!         Ok((head, body)) => match client.read(&query, &head, &body) {
//!             Ok(page) => {
//!                 let step = sync.apply(&page, ResponseHead::from(&head).date(), now())?;
//!                 save(&step); // the calls, the unreadable items and the state: one transaction
//!                 (sync, tried) = (step.next, 0);
//!                 if sync.is_walking() { continue } else { break }
//!             }
//!             Err(error) => error,
//!         },
//!         Err(_) => ClientError::no_response(),
//!     };
//!     if error.action() == Action::RestartList && restarts < 3 {
//!         (sync, restarts) = (sync.restarted(), restarts + 1); // its cursor is no longer taken
//!         continue;
//!     }
//!     tried += 1;
//!     match retry.decide(&error, tried, random(), now()) {
//!         RetryDecision::Wait(span) => sleep(span),
//!         RetryDecision::GiveUp => break, // `error.action()` says who must act
//!     }
//! }
//! # assert!(answers.is_empty() && !sync.is_walking());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod flow;
mod head;
mod pace;
mod paging;
mod request;
mod retry;
mod retry_after;
mod sync;
pub mod testing;

pub use error::{Action, ClientError, ClientErrorReason, MAX_ERROR_LEN, UnexpectedBody};
pub use flow::{
    Fetch, Flow, FlowError, Pages, PagesState, PagesStep, Progress, Step, Sync, Task, Ticket,
};
pub use head::ResponseHead;
pub use pace::Pace;
pub use paging::{MAX_EMPTY_PAGES, Paging, PagingError};
pub use request::{Client, NewClientError};
pub use retry::{Retry, RetryDecision};
pub use retry_after::RetryAfter;
pub use sync::{CallSync, DEFAULT_LAG, SyncError, SyncStep};
