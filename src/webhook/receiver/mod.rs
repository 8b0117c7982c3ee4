//! Receiving each event once, although the service delivers it at least once and in any order.
//!
//! An acknowledged event never comes again, so an event must be stored before it is acknowledged;
//! and one that comes again must be known. There are two ways to have both.
//!
//! - **Queue it.** Store the verified bytes under (account, event id), where that pair is a unique
//!   key, and acknowledge: [`WebhookResponse::Accepted`], or [`WebhookResponse::Duplicate`] where the key was there.
//!   What is genuine and no event is stored under a digest of its bytes. Work through the queue at
//!   leisure. Nothing of this module is needed.
//! - **Act on it at once**, with effects that cannot share a transaction with the store. Then the
//!   store keeps one [`InboxEntry`] for each event, and says whose turn it is:
//!
//! ```text
//!            arrive                     done
//! (nothing) ───────> taken until a time ─────> done: every copy is a duplicate
//!                    ^      │
//!                    └──────┘ failed, or the time ran out: the next copy is acted on
//! ```
//!
//! Of two copies that arrive at once, one is acted on and the other answered 503, so that it comes
//! again in case the first one fails. A process that dies in the middle loses nothing: its time
//! runs out before the service has made its last attempt.
//!
//! ```
//! use call_assistant::webhook::receiver::{CLAIM_LEASE, Claim, InboxEntry};
//! use call_assistant::webhook::WebhookResponse;
//! # use std::collections::BTreeMap;
//! # let now = call_assistant::Timestamp::UNIX_EPOCH;
//! # let mut rows: BTreeMap<(&str, &str), InboxEntry> = BTreeMap::new();
//! # let key = ("acct_1", "evt_1");
//! # let act_on_it = || true;
//!
//! let receipt = match InboxEntry::arrive(rows.get(&key), CLAIM_LEASE, now) {
//!     Claim::Process(entry) => {
//!         // Only if the row is still the one that was read: two copies may have read the same.
//!         // Whose write comes too late answers `Unavailable`.
//!         rows.insert(key, entry);
//!         if act_on_it() {
//!             rows.insert(key, entry.done(now)); // whatever the row is by now
//!             WebhookResponse::Accepted
//!         } else {
//!             // Only if the row is still `entry`: the time may have run out, and another copy
//!             // have been taken.
//!             rows.insert(key, entry.failed());
//!             WebhookResponse::Unavailable
//!         }
//!     }
//!     Claim::Duplicate => WebhookResponse::Duplicate,
//!     Claim::Busy => WebhookResponse::Unavailable,
//! };
//! assert_eq!(receipt.status(), 204);
//! assert_eq!(InboxEntry::arrive(rows.get(&key), CLAIM_LEASE, now), Claim::Duplicate);
//! ```
//!
//! Beside that, [`Version`] decides whether an update is newer than what is there, and
//! [`Reschedule`](super::Reschedule) finds the two events of an appointment that was moved.

mod inbox;
mod reschedule;

pub use inbox::{CLAIM_LEASE, Claim, Inbox, InboxEntry, KEEP, Version};
pub use reschedule::{Pairing, RESCHEDULE_SPAN, Reschedule};
