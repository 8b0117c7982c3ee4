//! The type of an event, and the data of each type.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use serde::de::{DeserializeSeed, Error, MapAccess};
use serde::ser::SerializeMap;
use serde::{Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::{
    FromJson, JsonObject, Names, ParseError, RawJson, ReadObject, Tracker, open_enum, read_object,
};
use crate::model::{Appointment, Call, Contact, TransferredCall};

/// Defines the types of events. A row has the text of the event's type, the occasion on which the
/// service sends the event, the Rust type of the data, the place of the data, and a sample of the
/// data. The comment above a row documents the variant of `EventData`. The place is a field of
/// `data`, a period and a field of the variant.
macro_rules! event_types {
    ($(
        $(#[$meta:meta])*
        $variant:ident = $text:literal, $sent_when:literal, $data:tt at $place:ident.$field:tt, $sample:expr;
    )+) => {
        open_enum! {
            /// The type of an event. If this version of the crate does not know a type, the type's
            /// text is kept.
            ///
            /// ```
            /// use call_assistant::webhook::event::EventType;
            ///
            /// assert_eq!(EventType::from("call.ended"), EventType::CallEnded);
            /// assert_eq!(EventType::from("call.paused").as_str(), "call.paused");
            /// ```
            pub enum EventType {
                $(#[doc = concat!("The event that is sent when ", $sent_when, ".")] $variant = $text,)+
            }
        }

        impl EventType {
            /// Returns the occasion on which the service sends an event of this type. The text
            /// completes a sentence that begins with "sent when". Returns `None` for a type that
            /// this version does not know.
            ///
            /// ```
            /// use call_assistant::webhook::event::EventType;
            ///
            /// assert_eq!(EventType::Ping.sent_when(), Some("the account's owner starts a test"));
            /// ```
            #[must_use]
            pub fn sent_when(&self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => Some($sent_when),)+
                    Self::Other(_) => None,
                }
            }

            /// Returns a sample of the `data` of this type, as JSON. Returns `None` for a type that
            /// this version does not know.
            ///
            /// ```
            /// use call_assistant::webhook::event::EventType;
            ///
            /// assert_eq!(EventType::Ping.sample(), Some(r#"{"message":"It works."}"#));
            /// ```
            #[must_use]
            pub fn sample(&self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => Some($sample),)+
                    Self::Other(_) => None,
                }
            }
        }

        /// The data of an event. The variant determines the type. Therefore the type and the data
        /// cannot disagree.
        ///
        /// ```
        /// use call_assistant::webhook::event::{EventData, EventType};
        ///
        /// fn is_about_a_call(data: &EventData) -> bool {
        ///     matches!(data.event_type(), EventType::CallEnded | EventType::CallTransferred)
        /// }
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum EventData {
            $(
                #[doc = concat!("`", $text, "`, sent when ", $sent_when, ".")]
                #[doc = ""]
                $(#[$meta])* $variant $data,
            )+
            /// The data of an event whose type this version does not know. Acknowledge the event
            /// nevertheless.
            Unknown(RawEventData),
            /// An event whose data, API version or origin has a form that this version of the crate
            /// does not know.
            #[non_exhaustive]
            Unreadable {
                /// The data.
                data: RawEventData,
                /// The fault and its place in the body, for example `data.object.started_at`. The
                /// error contains no value of the body.
                error: ParseError,
            },
        }

        impl EventData {
            /// Returns the event's type, as written in the envelope.
            #[must_use]
            pub fn event_type(&self) -> &EventType {
                match self {
                    $(Self::$variant { .. } => &EventType::$variant,)+
                    Self::Unknown(data) | Self::Unreadable { data, .. } => &data.event_type,
                }
            }
        }

        impl<'de> DeserializeSeed<'de> for DataOf<'_, 'de> {
            type Value = (EventData, OtherFields);

            fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
                let Self(event_type, tracker) = self;
                match event_type {
                    $(EventType::$variant => {
                        typed(from, tracker, $place, |value| EventData::$variant { $field: value })
                    })+
                    EventType::Other(_) => {
                        let event_type = event_type.clone();
                        let data = RawJson::read(from, tracker)?;
                        let unknown = RawEventData { event_type, data, envelope: None };
                        Ok((EventData::Unknown(unknown), OtherFields::default()))
                    }
                }
            }
        }

        impl Serialize for WrittenData<'_> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self.0 {
                    $(EventData::$variant { $field: value } => self.typed(to, $place, value),)+
                    EventData::Unknown(data) | EventData::Unreadable { data, .. } => {
                        data.data.serialize(to)
                    }
                }
            }
        }
    };
}

/// The name of the typed field of `data`; `None` if `data` may have any fields.
type Place = Option<&'static str>;
const OBJECT: Place = Some("object");
const MESSAGE: Place = Some("message");
const WHOLE: Place = None;

event_types! {
    CallEnded = "call.ended", "a call is over and has its summary",
        (Call) at OBJECT.0, concat!(
            r#"{"object":{"id":"call_8fK2","caller":{"contact_id":"cont_31","#,
            r#""phone_number":"+4712345678","display_name":"Kari Nordmann"},"#,
            r#""started_at":"2026-03-01T09:30:00Z","answered_at":"2026-03-01T09:30:03Z","#,
            r#""ended_at":"2026-03-01T09:34:08.5Z","duration_seconds":245,"#,
            r#""summary":"Asked for an appointment on Friday morning.","#,
            r#""appointment_ids":["appt_7"],"created_at":"2026-03-01T09:34:10.25Z"}}"#,
        );
    CallTransferred = "call.transferred", "the assistant transferred a call to a person",
        (TransferredCall) at OBJECT.0, concat!(
            r#"{"object":{"id":"call_8fK3","caller":{"contact_id":null,"#,
            r#""phone_number":"+4787654321","display_name":null},"#,
            r#""started_at":"2026-03-01T09:30:00Z","answered_at":"2026-03-01T09:30:03Z","#,
            r#""ended_at":"2026-03-01T09:34:08.5Z","duration_seconds":245,"summary":null,"#,
            r#""appointment_ids":[],"created_at":"2026-03-01T09:34:10.25Z","#,
            r#""target_label":"Front desk","transferred_at":"2026-03-01T09:32:00Z"}}"#,
        );
    AppointmentCreated = "appointment.created", "a new appointment is committed",
        (Appointment) at OBJECT.0, r#"{"object":{"id":"appt_7","status":"confirmed"}}"#;
    AppointmentUpdated = "appointment.updated", "an appointment is edited, moved or restored",
        (Appointment) at OBJECT.0, r#"{"object":{"id":"appt_7","status":"confirmed"}}"#;
    /// When the crate reads an event, the crate does not check that the status is `cancelled`.
    AppointmentCancelled = "appointment.cancelled", "an appointment is cancelled",
        (Appointment) at OBJECT.0, r#"{"object":{"id":"appt_7","status":"cancelled"}}"#;
    ContactCreated = "contact.created", "a curated contact is added",
        (Contact) at OBJECT.0, r#"{"object":{"id":"cont_31"}}"#;
    ContactUpdated = "contact.updated", "a curated contact changes",
        (Contact) at OBJECT.0, r#"{"object":{"id":"cont_31"}}"#;
    /// The data are counters, whose names the protocol does not define.
    UsageThresholdReached = "usage.threshold_reached",
        "the account reaches 75 % of its included minutes",
        (JsonObject) at WHOLE.0, "{}";
    #[non_exhaustive]
    Ping = "ping", "the account's owner starts a test",
        {
            /// A text that confirms the test.
            message: String
        } at MESSAGE.message, r#"{"message":"It works."}"#;
}

/// The data of an event that this version cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEventData {
    pub(super) event_type: EventType,
    pub(super) data: RawJson,
    /// The whole event; `None` if only the event's type is unknown.
    pub(super) envelope: Option<JsonObject>,
}

impl RawEventData {
    /// Returns the text of `data`, unchanged.
    #[must_use]
    pub fn json(&self) -> &RawValue {
        &self.data.0
    }
}

/// The fields of `data` other than the typed field, in the order received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OtherFields(Vec<(Box<str>, RawJson)>);

/// A reader of `data` in the form of the event's type. The data of an unknown type may have any
/// form.
pub(super) struct DataOf<'t, 'de>(pub(super) &'t EventType, pub(super) &'t Tracker<'de>);

fn typed<'de, D: Deserializer<'de>, T: FromJson<'de>>(
    from: D,
    tracker: &Tracker<'de>,
    place: Place,
    data: fn(T) -> EventData,
) -> Result<(EventData, OtherFields), D::Error> {
    let Some(name) = place else {
        return Ok((data(T::read(from, tracker)?), OtherFields::default()));
    };
    let fields = (name, None, OtherFields::default());
    let OneField(value, others) = read_object(from, tracker, fields, Names::Text)?;
    Ok((data(value), others))
}

/// An object with one typed field and any other fields.
struct OneField<T>(T, OtherFields);

impl<'de, T: FromJson<'de>> ReadObject<'de> for OneField<T> {
    /// The name of the typed field, its value, and the other fields.
    type Fields = (&'static str, Option<T>, OtherFields);

    fn read_field<A: MapAccess<'de>>(
        (typed, value, others): &mut Self::Fields,
        name: &str,
        map: &mut A,
        tracker: &Tracker<'de>,
    ) -> Result<bool, A::Error> {
        if name == *typed {
            tracker.once(value, map, tracker.seed())?;
        } else {
            others.0.push((name.into(), map.next_value_seed(tracker.seed())?));
        }
        Ok(true)
    }

    fn build<E: Error>(
        (typed, value, others): Self::Fields,
        tracker: &Tracker<'de>,
    ) -> Result<Self, E> {
        Ok(Self(tracker.required(value.or_else(FromJson::absent), typed)?, others))
    }
}

/// The `data` of an event, for writing.
pub(super) struct WrittenData<'a>(pub(super) &'a EventData, pub(super) &'a OtherFields);

impl WrittenData<'_> {
    fn typed<S: Serializer, T: Serialize>(
        &self,
        to: S,
        place: Place,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let Some(name) = place else { return value.serialize(to) };
        let mut map = to.serialize_map(None)?;
        map.serialize_entry(name, value)?;
        for (name, value) in &self.1.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
