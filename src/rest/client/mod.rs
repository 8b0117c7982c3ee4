//! The customer's side: what to ask, what an answer means, when to ask again, a sync that loses
//! nothing, and an inbox for events.
//!
//! Nothing here sends anything. A host asks for a request, sends it with whatever HTTP client it
//! has, and hands back what came:
//!
//! | for | there is |
//! |---|---|
//! | requests and answers | [`Client`], [`read`], [`ClientError`] by who must act |
//! | a key that a customer entered | [`KeyCheck`] |
//! | failures | [`Retry`]; [`Pace`], so that there are few |
//! | all pages of a list | [`Paging`] |
//! | all calls, now and from now on | [`sync::CallSync`]: see [`sync`] for what it promises |
//! | events, once each and in order | [`webhook::receiver`](crate::webhook::receiver) |
//!
//! A whole sync, but for the sending and the storing:
//!
//! ```
//! use call_assistant::rest::client::CallSync;
//! use call_assistant::rest::client::{Client, Failure, Pace, Remedy, Retry, RetryDecision, read};
//! # use call_assistant::Product;
//! use call_assistant::rest::BaseUrl;
//! use call_assistant::rest::ApiKey;
//! use call_assistant::model::CallList;
//! use call_assistant::rest::Quota;
//! # let now = || call_assistant::Timestamp::UNIX_EPOCH;
//! # let random = || [0; 8];
//! # let sleep = |_| {};
//! # let list = CallList::new(vec![], None);
//! # let mut answers = vec![
//! #     http::Response::new(list.to_json()),
//! #     http::Response::builder().status(500).body(Vec::new())?,
//! # ];
//! # let mut send = |_: http::Request<()>| answers.pop().ok_or(());
//! # let save = |_: &call_assistant::rest::client::SyncStep| {};
//! # let stored = CallSync::new();
//!
//! # let key = ApiKey::parse(&Product::default(), "service_live_keep-me-where-secrets-are-kept")?;
//! let client = Client::new(BaseUrl::parse("https://api.example.com")?, key);
//! let (retry, mut pace) = (Retry::new(), Pace::of(Quota::READS));
//!
//! let (mut sync, mut tried, mut restarts) = (stored, 0, 0);
//! loop {
//!     sleep(pace.turn(now()));
//!     let answer = send(client.request(&sync.query())?).map(http::Response::into_parts);
//!     let failure = match answer {
//!         Ok((head, body)) => match read::<CallList>(&head, &body) {
//!             Ok(page) => {
//!                 let step = sync.take(&page, now())?;
//!                 save(&step); // the calls and the state, in one transaction
//!                 (sync, tried) = (step.next, 0);
//!                 if sync.is_walking() { continue } else { break }
//!             }
//!             Err(error) if error.remedy() == Remedy::BeginListAgain && restarts < 3 => {
//!                 (sync, restarts) = (sync.restarted(), restarts + 1); // its cursor is not taken
//!                 continue;
//!             }
//!             Err(error) => Failure::from(&error),
//!         },
//!         Err(_) => Failure::NO_ANSWER,
//!     };
//!     tried += 1;
//!     match retry.decide(&failure, tried, random(), now()) {
//!         RetryDecision::Wait(span) => sleep(span),
//!         RetryDecision::GiveUp => break, // and look at the error: who must act?
//!     }
//! }
//! # assert!(answers.is_empty() && !sync.is_walking());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod key_check;
mod pace;
mod paging;
mod request;
mod response;
mod retry;
mod sync;

pub use key_check::{KeyCheck, Obstacle};
pub use pace::Pace;
pub use paging::{MAX_EMPTY_PAGES, Paging, PagingError, Turn};
pub use request::Client;
pub use response::{ClientError, Fault, MAX_ERROR_LEN, Remedy, ResponseHead, UnexpectedBody, read};
pub use retry::{Failure, Retry, RetryAfter, RetryDecision};
pub use sync::{CallSync, DEFAULT_LAG, SyncError, SyncStep};
