//! The fields that every event must have. The value of `data` remains text.

use serde_json::value::RawValue;

use super::data::EventType;
use crate::Timestamp;
use crate::id::{AccountId, EventId};
use crate::json::{self, Names, ParseError, ReadObject, deserialize, json_object, read_object};
use crate::text::{TextError, check_present, check_visible};

json_object! {
    /// The fields that an event must have, with the data as text.
    pub(super) struct RequiredFields<'de> {
        pub(super) id: EventId,
        pub(super) r#type: EventType,
        pub(super) created_at: Timestamp,
        pub(super) account_id: AccountId,
        pub(super) data: &'de RawValue,
    }
}

json_object! {
    /// The required fields of an event that is to be sent.
    pub(super) struct SendableFields<'de> {
        pub(super) id: EventId,
        pub(super) r#type: SendableType,
        pub(super) created_at: Timestamp,
        pub(super) account_id: AccountId,
        #[expect(dead_code, reason = "it only has to be there")]
        data: &'de RawValue,
    }
}

/// An event type that a header can contain.
pub(super) struct SendableType(pub(super) EventType);

impl SendableType {
    fn parse(text: &str) -> Result<Self, TextError> {
        check_present("event type", text)?;
        check_visible("event type", text)?;
        Ok(Self(text.into()))
    }
}

deserialize!(SendableType, "a string", SendableType::parse);

/// Reads the required fields. Other fields may have any name.
pub(super) fn required_fields<'de, T>(bytes: &'de [u8]) -> Result<T, ParseError>
where
    T: ReadObject<'de, Fields: Default>,
{
    let fields = T::Fields::default();
    json::read_with(bytes, |from, tracker| read_object(from, tracker, fields, Names::Any))
}
