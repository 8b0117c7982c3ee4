//! The event of tests to which its kind does not matter.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};

/// Returns a ping with this id.
pub fn ping(id: &str, account: &str, now: Timestamp) -> EventBody {
    let (id, account) = (EventId::parse(id).unwrap(), AccountId::parse(account).unwrap());
    let version = ApiVersion::parse("2026-01-15").unwrap();
    NewEvent::new(id, account, version, Origin::voice(), now).ping("hello").unwrap()
}
