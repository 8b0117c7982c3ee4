//! One call that the assistant answered.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use crate::Timestamp;
use crate::id::{AppointmentId, CallId, ContactId};
use crate::json::{self, ParseError, deserialize, json_object};

json_object! {
    /// An inbound call that the assistant answered. After the service has written a call, the call
    /// never changes.
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
        /// The call's id.
        pub id: CallId,
        /// The caller. Each field of the caller may be unknown.
        pub caller: CallCaller,
        /// The time when the call arrived, before the assistant picked up. Lists are ordered by
        /// this time.
        pub started_at: Timestamp,
        /// The time when the assistant picked up.
        pub answered_at: Option<Timestamp>,
        /// The time when the call ended.
        pub ended_at: Option<Timestamp>,
        /// The length of the call, in seconds. A reader accepts any integral number, such as
        /// `240.0` or `-1`.
        pub duration_seconds: Option<i64>,
        /// The subject of the call.
        pub summary: Option<String>,
        /// The appointments booked during the call, oldest first. An appointment that is cancelled
        /// after the call stays in the list.
        pub appointment_ids: Vec<AppointmentId>,
        /// The time when the record was written, after the call ended. The filters `created_after`
        /// and `created_before` and the watermark of a sync use this time.
        ///
        /// The time is the start of the transaction that wrote the record. Therefore a call can
        /// become visible after a call with a later `created_at`.
        pub created_at: Timestamp,
    }
}

json_object! {
    /// The caller of a call. Each field may be unknown.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
    #[non_exhaustive]
    pub struct CallCaller {
        /// The caller's entry in the address book.
        pub contact_id: Option<ContactId>,
        /// The caller's number.
        pub phone_number: Option<String>,
        /// The caller's name, if the account's owner entered or imported the name.
        pub display_name: Option<String>,
    }
}

deserialize!(CallCaller);

impl Call {
    /// Creates a call of an unknown caller. All fields without an argument are `None` or empty.
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

    /// Returns the sort key of the call in a list. Lists are in descending order of this key: by
    /// `started_at`, and for equal times by id, byte by byte.
    #[must_use]
    pub fn list_order(&self) -> (Timestamp, &CallId) {
        (self.started_at, &self.id)
    }

    /// Reads a call from JSON, by the rules in [`json`](crate::json).
    ///
    /// # Errors
    /// Returns the fault of the JSON and its position, but not the received value.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ParseError> {
        json::read(bytes)
    }

    /// Writes a call as JSON without spaces.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

deserialize!(Call);
