//! The order of an object's states.

use crate::Timestamp;
use crate::json::{JsonObject, stored_object};

stored_object! {
    /// The position of a state among the states of its object. States are ordered by the object's
    /// own time, then by the time of the event that carried the state.
    ///
    /// ```
    /// # use call_assistant::Timestamp;
    /// use call_assistant::json::JsonObject;
    /// use call_assistant::webhook::receiver::ObjectVersion;
    /// # let (earlier, later) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
    ///
    /// let moved = JsonObject::parse(r#"{"id":"appt_1","updated_at":"2026-07-24T10:05:00Z"}"#)?;
    /// let booked = JsonObject::parse(r#"{"id":"appt_1","updated_at":"2026-07-24T10:00:00Z"}"#)?;
    ///
    /// let stored = ObjectVersion::from_fields(&moved, &["updated_at", "created_at"], earlier);
    /// let late = ObjectVersion::from_fields(&booked, &["updated_at", "created_at"], later);
    /// assert!(!late.replaces(Some(stored)));
    /// assert!(stored.replaces(Some(late)));
    /// # Ok::<(), call_assistant::json::ParseError>(())
    /// ```
    ///
    /// Events arrive in any order. Therefore apply an update only if the update is not older than
    /// the stored state. Store the version with the object. Keep the version even after you delete
    /// the object, because otherwise a late update restores the object.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct ObjectVersion {
        object: Timestamp,
        event: Timestamp,
    }
}

impl ObjectVersion {
    /// Creates the version of an object's state. The caller passes `fields`, because the
    /// [protocol](crate::guide::protocol) does not define the object's fields. The first of
    /// `fields` that contains an RFC 3339 time is the object's time. If no field contains such a
    /// time, the event's time is the object's time.
    #[must_use]
    pub fn from_fields(object: &JsonObject, fields: &[&str], event_created_at: Timestamp) -> Self {
        let time = |field: &&str| Timestamp::parse(&object.get_str(field)?).ok();
        let own = fields.iter().find_map(time);
        Self { object: own.unwrap_or(event_created_at), event: event_created_at }
    }

    /// Returns whether a state of this version replaces the stored state.
    ///
    /// If the two versions are equal, the new state replaces the stored state. Times in whole
    /// seconds are often equal. The order of arrival proves nothing, but no better information is
    /// available.
    #[must_use]
    pub fn replaces(self, stored: Option<Self>) -> bool {
        stored.is_none_or(|stored| stored <= self)
    }
}
