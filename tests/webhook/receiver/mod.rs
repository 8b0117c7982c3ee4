//! The customer's side: what has arrived already, and in which order.

use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::receiver::{Claim, InboxEntry};

mod entry;
mod inbox;
mod reschedule;
mod version;

fn account(name: &str) -> AccountId {
    AccountId::parse(name).unwrap()
}

fn event(name: &str) -> EventId {
    EventId::parse(&format!("evt_{name}")).unwrap()
}

#[track_caller]
fn taken(claim: Claim) -> InboxEntry {
    match claim {
        Claim::Process(entry) => entry,
        other => panic!("{other:?}"),
    }
}
