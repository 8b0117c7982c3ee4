//! Processes each event once, although the service delivers it at least once and in any order.
//!
//! ```
//! use call_assistant::webhook::WebhookResponse;
//! use call_assistant::webhook::receiver::{CLAIM_LEASE, Claim, InboxEntry};
//! # use std::collections::BTreeMap;
//! # let now = call_assistant::Timestamp::UNIX_EPOCH;
//! # let mut rows: BTreeMap<(&str, &str), InboxEntry> = BTreeMap::new();
//! # let key = ("acct_1", "evt_1");
//! # let process = || true;
//!
//! let response = match InboxEntry::claim(rows.get(&key), CLAIM_LEASE, now) {
//!     Claim::Process(entry) => {
//!         // Only if the row is still the one that was read: two copies may have read the same.
//!         // The handler whose write comes too late answers `Unavailable`.
//!         rows.insert(key, entry);
//!         if process() {
//!             rows.insert(key, entry.done(now)); // whatever the row is by now
//!             WebhookResponse::Accepted
//!         } else {
//!             // Only if the row is still `entry`: the lease may have expired, and another handler
//!             // may hold the event.
//!             rows.insert(key, entry.failed());
//!             WebhookResponse::Unavailable
//!         }
//!     }
//!     Claim::Duplicate => WebhookResponse::Duplicate,
//!     Claim::Busy => WebhookResponse::Unavailable,
//! };
//! assert_eq!(response.status(), 204);
//! assert_eq!(InboxEntry::claim(rows.get(&key), CLAIM_LEASE, now), Claim::Duplicate);
//! ```
//!
//! The service never sends an acknowledged event again, so store an event before acknowledging it;
//! and recognise an event that arrives again. There are two ways:
//!
//! - **Queue it.** Store the verified bytes under (account id, event id) as a unique key, and
//!   acknowledge: [`Accepted`](super::WebhookResponse::Accepted), or
//!   [`Duplicate`](super::WebhookResponse::Duplicate) if the key exists. Store a
//!   genuine body that is not an event under a digest of its bytes. Process the queue later. This
//!   way needs nothing from this module.
//! - **Process it immediately**, with effects that cannot share a transaction with the store. The
//!   store then keeps one [`InboxEntry`] for each event:
//!
//! ```text
//!            claim                      done
//! (nothing) ───────> taken until a time ─────> done: every copy is a duplicate
//!                    ^      │
//!                    └──────┘ failed, or the lease expired: the next copy is processed
//! ```
//!
//! Of two copies that arrive together, one is processed and the other answered 503, so that the
//! service sends it again in case the first one fails. A process that dies while it holds an event
//! loses nothing: its lease expires before the service makes its last attempt. [`Inbox`] does the
//! same in memory.
//!
//! [`ObjectVersion`] decides whether an update is newer than the stored state, and [`Reschedule`]
//! finds the two events of an appointment that was moved.
//!
//! # Wrong clocks
//!
//! Every claim is compared with `now`, so hosts that share a store should agree on the time to well
//! within a lease. What a clock that does not agree costs is bounded:
//!
//! | step of the clock | effect |
//! |---|---|
//! | forward, past the end of a lease | claims made before count as expired: copies that arrive while a handler works are processed twice |
//! | back by less than a lease | an abandoned event is held for up to twice its lease |
//! | back by more than a lease | claims made before end more than twice their own length after `now`: they count as expired, as above |
//! | back or forward, by any amount | processed events stay processed; a cleanup with [`InboxEntry::is_deletable`] on a clock that is ahead deletes entries too early, so that copies of these events are processed again |

mod entry;
mod inbox;
mod reschedule;
mod tally;
mod version;

pub use entry::{CLAIM_LEASE, Claim, INBOX_RETENTION, InboxEntry};
pub use inbox::Inbox;
pub use reschedule::{RESCHEDULE_SPAN, Reschedule, RescheduleMatch};
pub use tally::Tally;
pub use version::ObjectVersion;
