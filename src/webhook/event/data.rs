//! The type of an event and, by type, its data.

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

open_enum! {
    /// The type of an event. A type that this version does not know is kept.
    ///
    /// ```
    /// use call_assistant::webhook::event::EventType;
    ///
    /// assert_eq!(EventType::from("call.ended"), EventType::CallEnded);
    /// assert_eq!(EventType::from("call.paused").as_str(), "call.paused");
    /// ```
    pub enum EventType {
        /// A call that is over and has its summary.
        CallEnded = "call.ended",
        /// A call that the assistant transferred to a person.
        CallTransferred = "call.transferred",
        /// A new appointment.
        AppointmentCreated = "appointment.created",
        /// An appointment that was edited, moved or restored.
        AppointmentUpdated = "appointment.updated",
        /// An appointment that was cancelled.
        AppointmentCancelled = "appointment.cancelled",
        /// A curated contact that was added.
        ContactCreated = "contact.created",
        /// A curated contact that changed.
        ContactUpdated = "contact.updated",
        /// 75 % of the account's included minutes, which have been used.
        UsageThresholdReached = "usage.threshold_reached",
        /// A test that the account's owner started in the dashboard.
        Ping = "ping",
    }
}

/// The data of an event. The variant is the type, so the two cannot disagree.
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
    /// A call that is over and has its summary.
    CallEnded(Call),
    /// A call that the assistant transferred to a person.
    CallTransferred(TransferredCall),
    /// A new appointment.
    AppointmentCreated(Appointment),
    /// An appointment that was edited, moved or restored.
    AppointmentUpdated(Appointment),
    /// An appointment that was cancelled. That its status is `cancelled` is not checked.
    AppointmentCancelled(Appointment),
    /// A curated contact that was added.
    ContactCreated(Contact),
    /// A curated contact that changed.
    ContactUpdated(Contact),
    /// Counters of usage, once the account has used 75 % of its included minutes. The protocol does
    /// not define their names.
    UsageThresholdReached(JsonObject),
    /// A test from the dashboard.
    #[non_exhaustive]
    Ping {
        /// A text that confirms the test.
        message: String,
    },
    /// Data of a type that this version does not know. Acknowledge the event all the same.
    Unknown(RawEventData),
    /// An event whose data, version or origin does not have the form that this version knows.
    #[non_exhaustive]
    Unreadable {
        /// The data.
        data: RawEventData,
        /// What does not fit, and where in the body: `data.object.started_at`. No value is quoted.
        error: ParseError,
    },
}

impl EventData {
    /// Returns the type, as it is written in the envelope.
    #[must_use]
    pub fn event_type(&self) -> &EventType {
        match self {
            Self::CallEnded(_) => &EventType::CallEnded,
            Self::CallTransferred(_) => &EventType::CallTransferred,
            Self::AppointmentCreated(_) => &EventType::AppointmentCreated,
            Self::AppointmentUpdated(_) => &EventType::AppointmentUpdated,
            Self::AppointmentCancelled(_) => &EventType::AppointmentCancelled,
            Self::ContactCreated(_) => &EventType::ContactCreated,
            Self::ContactUpdated(_) => &EventType::ContactUpdated,
            Self::UsageThresholdReached(_) => &EventType::UsageThresholdReached,
            Self::Ping { .. } => &EventType::Ping,
            Self::Unknown(data) | Self::Unreadable { data, .. } => &data.event_type,
        }
    }
}

/// The data of an event that this version does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEventData {
    pub(super) event_type: EventType,
    pub(super) data: RawJson,
    /// The whole event, if its form does not fit. `None` if only its type is not known.
    pub(super) envelope: Option<JsonObject>,
}

impl RawEventData {
    /// Returns `data`, to the letter.
    #[must_use]
    pub fn json(&self) -> &RawValue {
        &self.data.0
    }
}

/// The fields of `data` other than the typed one, in the order received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OtherFields(Vec<(Box<str>, RawJson)>);

/// A reader of `data` in the form of this type. The data of an unknown type has any form.
pub(super) struct DataOf<'t, 'de>(pub(super) &'t EventType, pub(super) &'t Tracker<'de>);

impl<'de> DeserializeSeed<'de> for DataOf<'_, 'de> {
    type Value = (EventData, OtherFields);

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        let Self(event_type, tracker) = self;
        match event_type {
            EventType::CallEnded => typed(from, tracker, OBJECT, EventData::CallEnded),
            EventType::CallTransferred => typed(from, tracker, OBJECT, EventData::CallTransferred),
            EventType::AppointmentCreated => {
                typed(from, tracker, OBJECT, EventData::AppointmentCreated)
            }
            EventType::AppointmentUpdated => {
                typed(from, tracker, OBJECT, EventData::AppointmentUpdated)
            }
            EventType::AppointmentCancelled => {
                typed(from, tracker, OBJECT, EventData::AppointmentCancelled)
            }
            EventType::ContactCreated => typed(from, tracker, OBJECT, EventData::ContactCreated),
            EventType::ContactUpdated => typed(from, tracker, OBJECT, EventData::ContactUpdated),
            EventType::UsageThresholdReached => {
                let counters = JsonObject::read(from, tracker)?;
                Ok((EventData::UsageThresholdReached(counters), OtherFields::default()))
            }
            EventType::Ping => typed(from, tracker, MESSAGE, |message| EventData::Ping { message }),
            EventType::Other(_) => {
                let event_type = event_type.clone();
                let data = RawJson::read(from, tracker)?;
                let unknown = RawEventData { event_type, data, envelope: None };
                Ok((EventData::Unknown(unknown), OtherFields::default()))
            }
        }
    }
}

const OBJECT: &str = "object";
const MESSAGE: &str = "message";

fn typed<'de, D: Deserializer<'de>, T: FromJson<'de>>(
    from: D,
    tracker: &Tracker<'de>,
    name: &'static str,
    data: fn(T) -> EventData,
) -> Result<(EventData, OtherFields), D::Error> {
    let fields = (name, None, OtherFields::default());
    let OneField(value, others) = read_object(from, tracker, fields, Names::Text)?;
    Ok((data(value), others))
}

/// An object with one typed field, and any others.
struct OneField<T>(T, OtherFields);

impl<'de, T: FromJson<'de>> ReadObject<'de> for OneField<T> {
    /// The name of the typed field, its value, and the others.
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

/// The `data` of an event, as it is written.
pub(super) struct WrittenData<'a>(pub(super) &'a EventData, pub(super) &'a OtherFields);

impl Serialize for WrittenData<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            EventData::CallEnded(call) => self.fields(to, OBJECT, call),
            EventData::CallTransferred(call) => self.fields(to, OBJECT, call),
            EventData::AppointmentCreated(appointment)
            | EventData::AppointmentUpdated(appointment)
            | EventData::AppointmentCancelled(appointment) => self.fields(to, OBJECT, appointment),
            EventData::ContactCreated(contact) | EventData::ContactUpdated(contact) => {
                self.fields(to, OBJECT, contact)
            }
            EventData::UsageThresholdReached(counters) => counters.serialize(to),
            EventData::Ping { message } => self.fields(to, MESSAGE, message),
            EventData::Unknown(unread) | EventData::Unreadable { data: unread, .. } => {
                unread.data.serialize(to)
            }
        }
    }
}

impl WrittenData<'_> {
    fn fields<S: Serializer, T: Serialize>(
        &self,
        to: S,
        name: &str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry(name, value)?;
        for (name, value) in &self.1.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
