//! Receives each event once, although the service may deliver events several times and in any
//! order.
//!
//! ```
//! use std::io;
//!
//! use call_assistant::Timestamp;
//! use call_assistant::webhook::receiver::EventKey;
//! use call_assistant::webhook::{Verifier, WebhookResponse};
//! use http::Request;
//!
//! fn answer(
//!     verifier: &Verifier,
//!     request: &Request<Vec<u8>>,
//!     insert: impl FnOnce(&EventKey, &[u8]) -> io::Result<()>, // does nothing with a copy
//!     now: Timestamp,
//! ) -> WebhookResponse {
//!     match verifier.receive(request.headers(), request.body(), now) {
//!         Ok(receipt) => match insert(receipt.key(), request.body()) {
//!             Ok(()) => receipt.stored(), // 204: the service forgets the event
//!             Err(_) => WebhookResponse::Unavailable, // 503: the service sends it again
//!         },
//!         Err(error) => error.response(), // 400: log the error, it says what is wrong
//!     }
//! }
//! ```
//!
//! The service repeats an event until an answer acknowledges the event, until a 410 disables the
//! endpoint, or until the last attempt of the delivery. The service repeats an acknowledged event
//! only if the service's sender fails before it stores the answer. Therefore acknowledge an event
//! only after the event is stored. Only [`Receipt::stored`] and [`ActiveClaim::done`] acknowledge
//! an event. A program can use one of the two orders below.
//!
//! # Store, answer, handle later
//!
//! The first example on this page uses this order. This order suits most programs, because a slow
//! or broken handler does not delay the answer, for which the service waits at most ten seconds. A
//! worker then reads each row with [`Event::from_bytes_verified_earlier`](super::event::Event) and
//! handles the event. [`ReceiverMetrics`] counts events in both orders. These are the statements
//! for PostgreSQL:
//!
//! ```sql
#![doc = include_str!("../../guide/sql/receiver/queue.sql")]
//! ```
//!
//! # Claim, handle, done, answer
//!
//! This order needs no worker. The program handles an event before it acknowledges the event. The
//! service waits only ten seconds for the answer, so the handler must take much less time:
//!
//! ```
//! use call_assistant::Timestamp;
//! use call_assistant::webhook::WebhookResponse;
//! use call_assistant::webhook::event::Event;
//! use call_assistant::webhook::receiver::{ActiveClaim, ClaimOutcome, EventKey, InboxEntry, Receipt};
//! # use call_assistant::json::ParseError;
//! # type Handled = Result<(), ()>;
//! # fn handle(_: Result<&Event, &ParseError>) -> Handled { Ok(()) }
//! # struct Db;
//! # impl Db {
//! #     fn read(&self, _: &EventKey) -> Option<InboxEntry> { None }
//! #     fn replace(&self, _: &EventKey, _: Option<InboxEntry>, _: InboxEntry) -> bool { true }
//! #     fn write(&self, _: &EventKey, _: InboxEntry) {}
//! # }
//!
//! fn answer(db: &Db, receipt: Receipt, now: fn() -> Timestamp) -> WebhookResponse {
//!     let key = receipt.key().clone();
//!     let row = db.read(&key);
//!     let claimed = match receipt.claim(row.as_ref(), ActiveClaim::LEASE, now()) {
//!         ClaimOutcome::Process(claimed) => claimed,
//!         ClaimOutcome::Answer(response) => return response,
//!     };
//!     let claim = claimed.entry();
//!     if !db.replace(&key, row, claim) {
//!         return WebhookResponse::Unavailable; // another handler was faster
//!     }
//!     match handle(claimed.receipt().event()) { // `Ok` also for what it cannot read, and has kept
//!         Ok(()) => {
//!             let (entry, response) = claimed.done(now());
//!             db.write(&key, entry);
//!             response
//!         }
//!         Err(()) => {
//!             let (entry, response) = claimed.failed();
//!             db.replace(&key, Some(claim), entry); // if the row still is the claim
//!             response
//!         }
//!     }
//! }
//! ```
//!
//! [`Inbox`] is a store in memory for the order of claim, handle, done and answer. The page of
//! `Inbox` has SQL statements for a store in a database.
//!
//! **If a program ends after it has handled an event and before it has stored `done`, the event is
//! handled again** after the lease has expired. Therefore store the effects and `done` in one
//! transaction, or use the event's id as the idempotency key. If two copies of an event arrive
//! together, one copy is handled. The program answers 503 to the other copy, because handling the
//! first copy may fail.
//!
//! ```text
//!            claim                      done
//! (nothing) ───────> taken until a time ─────> done: every copy is a duplicate
//!                    ^      │
//!                    └──────┘ failed, or the lease expired: the next copy is handled
//! ```
//!
//! [`ObjectVersion`] decides whether an update is newer than the stored state, and [`MovedAppointment`]
//! finds the two events of an appointment that was moved.
//!
//! # What does not compile
//!
//! An acknowledgement without a receipt:
//!
//! ```compile_fail,E0603
//! # use call_assistant::webhook::WebhookResponse;
//! fn answer() -> WebhookResponse {
//!     WebhookResponse::Accepted
//! }
//! ```
//!
//! An acknowledgement for an event that was claimed and is not done:
//!
//! ```compile_fail,E0599
//! # use call_assistant::webhook::WebhookResponse;
//! # use call_assistant::webhook::receiver::ActiveClaim;
//! fn answer(claimed: ActiveClaim) -> WebhookResponse {
//!     claimed.stored()
//! }
//! ```
//!
//! ```compile_fail,E0507
//! # use call_assistant::webhook::WebhookResponse;
//! # use call_assistant::webhook::receiver::ActiveClaim;
//! fn answer(claimed: &ActiveClaim) -> WebhookResponse {
//!     claimed.receipt().stored()
//! }
//! ```
//!
//! One acknowledgement for two deliveries:
//!
//! ```compile_fail,E0382
//! # use call_assistant::webhook::receiver::Receipt;
//! fn answer(receipt: Receipt) -> [http::StatusCode; 2] {
//!     let response = receipt.stored();
//!     [response.into_status(), response.into_status()]
//! }
//! ```
//!
//! An acknowledgement for an event that failed:
//!
//! ```compile_fail,E0382
//! # use call_assistant::Timestamp;
//! # use call_assistant::webhook::WebhookResponse;
//! # use call_assistant::webhook::receiver::ActiveClaim;
//! fn answer(claimed: ActiveClaim, now: Timestamp) -> WebhookResponse {
//!     let (entry, response) = claimed.failed();
//!     claimed.done(now).1
//! }
//! ```
//!
//! # Wrong clocks
//!
//! The times of all claims are compared with `now`. Therefore the clocks of hosts that share a
//! store should differ by much less than a lease. The effect of a wrong clock is bounded:
//!
//! | step of the clock | effect |
//! |---|---|
//! | forward, past the end of a lease | claims from before the step count as expired. Therefore a copy that arrives while a handler works is also processed |
//! | back by less than a lease | an event whose handler has died is held for up to twice its lease |
//! | back by more than a lease | claims from before the step end more than twice their own length after `now`, and therefore count as expired, as in the first row |
//! | back or forward, by any amount | processed events stay processed. If the clock is ahead, a cleanup with [`InboxEntry::is_deletable`] deletes entries too early, and later copies of these events are processed again |

mod inbox;
mod inbox_entry;
mod metrics;
mod moved_appointment;
mod receipt;
mod version;

pub use inbox::Inbox;
pub use inbox_entry::InboxEntry;
pub use metrics::ReceiverMetrics;
pub use moved_appointment::MovedAppointment;
pub use receipt::{ActiveClaim, ClaimOutcome, EventKey, Receipt, ReceiptError};
pub use version::ObjectVersion;
