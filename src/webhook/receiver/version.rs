//! The order of an object's states.

use crate::Timestamp;
use crate::json::{JsonObject, stored_object};

stored_object! {
    /// The place of a state among those of its object: by the object's own time, then by that of the
    /// event that carried it.
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
    /// Events arrive in any order, so apply an update only if it is not older than the stored state.
    /// Store the version with the object. Keep the version when the object is deleted, too: otherwise
    /// a late update restores the object.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct ObjectVersion {
        object: Timestamp,
        event: Timestamp,
    }
}

impl ObjectVersion {
    /// Creates the version of an object whose fields the [protocol](crate::guide::protocol) leaves
    /// open. The first of `fields` that holds an RFC 3339 time is the object's time; without one, the
    /// object is as recent as its event.
    #[must_use]
    pub fn from_fields(object: &JsonObject, fields: &[&str], event_created_at: Timestamp) -> Self {
        let time = |field: &&str| Timestamp::parse(&object.get_str(field)?).ok();
        let own = fields.iter().find_map(time);
        Self { object: own.unwrap_or(event_created_at), event: event_created_at }
    }

    /// Returns whether a state of this version replaces the stored one.
    ///
    /// If two states are equally recent, as times in whole seconds often are, the later arrival is
    /// applied. Arrival proves no order, but it is the best guess available.
    #[must_use]
    pub fn replaces(self, stored: Option<Self>) -> bool {
        stored.is_none_or(|stored| stored <= self)
    }
}
