//! One call that the assistant answered.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use crate::Timestamp;
use crate::id::{AppointmentId, CallId, ContactId};
use crate::json::{json_body, read_object};

/// One inbound call that the assistant answered. Once written, it never changes.
///
/// ```
/// use call_assistant::id::CallId;
/// use call_assistant::model::Call;
/// use call_assistant::Timestamp;
///
/// let started: Timestamp = "2026-03-01T09:30:00Z".parse().unwrap();
/// let written: Timestamp = "2026-03-01T09:34:10.25Z".parse().unwrap();
///
/// let mut call = Call::new(CallId::parse("call_8fK2").unwrap(), started, written);
/// call.caller.phone_number = Some("+4712345678".into());
/// call.summary = Some("Asked for an appointment on Friday.".into());
///
/// assert_eq!(Call::from_json(&call.to_json()), Ok(call));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Call {
    /// Which call.
    pub id: CallId,
    /// Who called. Always there; what is not known of them is `None`.
    pub caller: CallCaller,
    /// When the call arrived, before the assistant picked up. Lists are ordered by it.
    pub started_at: Timestamp,
    /// When the assistant picked up.
    pub answered_at: Option<Timestamp>,
    /// When the call ended.
    pub ended_at: Option<Timestamp>,
    /// How long the call took, in seconds.
    pub duration_seconds: Option<u64>,
    /// What the call was about.
    pub summary: Option<String>,
    /// The appointments booked during the call, oldest first, those since cancelled included:
    /// what the call did, not how things stand now.
    pub appointment_ids: Vec<AppointmentId>,
    /// When the record was written, after the call ended: what `created_after` and
    /// `created_before` filter on, and what an incremental sync watermarks.
    ///
    /// It is the start of the writing transaction, so a call may become visible after another
    /// with a later `created_at`.
    pub created_at: Timestamp,
}

/// Who called. Each field may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CallCaller {
    /// The caller's entry in the address book.
    pub contact_id: Option<ContactId>,
    /// The number they called from.
    pub phone_number: Option<String>,
    /// Their name, only if the account's owner entered or imported it.
    pub display_name: Option<String>,
}

impl Call {
    /// A call of an unknown caller about which nothing else is known.
    #[must_use]
    pub fn new(id: CallId, started_at: Timestamp, created_at: Timestamp) -> Self {
        Self {
            id,
            caller: CallCaller::default(),
            started_at,
            answered_at: None,
            ended_at: None,
            duration_seconds: None,
            summary: None,
            appointment_ids: Vec::new(),
            created_at,
        }
    }
}

read_object!(Call {
    id: required,
    caller: required,
    started_at: required,
    answered_at: nullable,
    ended_at: nullable,
    duration_seconds: nullable,
    summary: nullable,
    appointment_ids: required,
    created_at: required,
});
read_object!(CallCaller { contact_id: nullable, phone_number: nullable, display_name: nullable });
json_body!(Call);
