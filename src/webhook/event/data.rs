//! What an event is about: its type and, by type, its data.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::open_enum;
use crate::json::{JsonObject, ParseError};
use crate::model::{Appointment, Call, Contact, TransferredCall};

open_enum! {
    /// The type of an event. A type this version does not know is kept, not refused.
    pub enum EventType {
        /// A call ended and its summary is ready.
        CallEnded = "call.ended",
        /// The assistant transferred a call to a person.
        CallTransferred = "call.transferred",
        /// A new appointment was committed.
        AppointmentCreated = "appointment.created",
        /// An appointment was edited, moved or restored.
        AppointmentUpdated = "appointment.updated",
        /// An appointment was cancelled.
        AppointmentCancelled = "appointment.cancelled",
        /// A curated contact was added.
        ContactCreated = "contact.created",
        /// A curated contact changed.
        ContactUpdated = "contact.updated",
        /// The account reached 75 % of its included minutes.
        UsageThresholdReached = "usage.threshold_reached",
        /// The account's owner asked for a test in the dashboard.
        Ping = "ping",
    }
}

/// An event's data. The variant is the type, so the two cannot disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventData {
    /// A call ended and its summary is ready.
    CallEnded(Call),
    /// The assistant transferred a call to a person.
    CallTransferred(TransferredCall),
    /// A new appointment was committed.
    AppointmentCreated(Appointment),
    /// An appointment was edited, moved or restored.
    AppointmentUpdated(Appointment),
    /// An appointment was cancelled. Its status should say so, too, which is not checked.
    AppointmentCancelled(Appointment),
    /// A curated contact was added.
    ContactCreated(Contact),
    /// A curated contact changed.
    ContactUpdated(Contact),
    /// The account reached 75 % of its included minutes. The counters, whose names the
    /// specification does not give, are all there is in `data`.
    UsageThresholdReached(JsonObject),
    /// A test from the dashboard.
    Ping(Ping),
    /// A type this version does not know. Acknowledge it all the same.
    Unknown(UnknownData),
    /// A known type with data of another form than this version knows.
    Unreadable(UnreadableData),
}

impl EventData {
    /// The type, as the envelope states it.
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
            Self::Ping(_) => &EventType::Ping,
            Self::Unknown(unknown) => &unknown.event_type,
            Self::Unreadable(unreadable) => &unreadable.event_type,
        }
    }
}

/// The data of a ping.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ping {
    /// The text that confirms the test.
    pub message: String,
}

/// The data of an event whose type this version does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownData {
    /// An `EventType::Other`, always.
    event_type: EventType,
    data: Kept,
}

impl UnknownData {
    /// `data` to the letter.
    #[must_use]
    pub fn json(&self) -> &RawValue {
        &self.data.0
    }
}

/// Holds the data of an event that does not have the form this version knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableData {
    event_type: EventType,
    data: Kept,
    envelope: Kept,
    error: ParseError,
}

impl UnreadableData {
    pub(super) fn new(
        event_type: EventType,
        data: &RawValue,
        envelope: &RawValue,
        error: ParseError,
    ) -> Self {
        Self { event_type, data: Kept(data.to_owned()), envelope: Kept(envelope.to_owned()), error }
    }

    pub(super) fn envelope(&self) -> &RawValue {
        &self.envelope.0
    }

    /// `data` to the letter.
    #[must_use]
    pub fn json(&self) -> &RawValue {
        &self.data.0
    }

    /// What does not fit, and where in the body: `data.object.started_at`. It quotes no value.
    #[must_use]
    pub fn error(&self) -> &ParseError {
        &self.error
    }
}

/// A JSON value as it came.
#[derive(Clone, Serialize)]
#[serde(transparent)]
struct Kept(Box<RawValue>);

impl PartialEq for Kept {
    /// The same text.
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for Kept {}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get())
    }
}

/// The fields of `data` beside the one that is typed, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OtherFields(Vec<(Box<str>, Kept)>);

impl OtherFields {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, value)| (&**name, &*value.0))
    }
}

/// Reads `data` as an event of this type has it. Unknown types have anything.
pub(super) struct DataOf<'t>(pub(super) &'t EventType);

impl<'de> DeserializeSeed<'de> for DataOf<'_> {
    type Value = (EventData, OtherFields);

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        match self.0 {
            EventType::CallEnded => typed(from, OBJECT, EventData::CallEnded),
            EventType::CallTransferred => typed(from, OBJECT, EventData::CallTransferred),
            EventType::AppointmentCreated => typed(from, OBJECT, EventData::AppointmentCreated),
            EventType::AppointmentUpdated => typed(from, OBJECT, EventData::AppointmentUpdated),
            EventType::AppointmentCancelled => typed(from, OBJECT, EventData::AppointmentCancelled),
            EventType::ContactCreated => typed(from, OBJECT, EventData::ContactCreated),
            EventType::ContactUpdated => typed(from, OBJECT, EventData::ContactUpdated),
            EventType::UsageThresholdReached => {
                let counters = JsonObject::deserialize(from)?;
                Ok((EventData::UsageThresholdReached(counters), OtherFields::default()))
            }
            EventType::Ping => typed(from, MESSAGE, |message| EventData::Ping(Ping { message })),
            EventType::Other(_) => {
                let event_type = self.0.clone();
                let data = Kept(Box::deserialize(from)?);
                Ok((EventData::Unknown(UnknownData { event_type, data }), OtherFields::default()))
            }
        }
    }
}

const OBJECT: &str = "object";
const MESSAGE: &str = "message";

fn typed<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
    name: &'static str,
    data: fn(T) -> EventData,
) -> Result<(EventData, OtherFields), D::Error> {
    let (value, others) = from.deserialize_map(OneField { name, of: PhantomData })?;
    Ok((data(value), others))
}

/// An object with one typed field, and whatever else stands beside it.
struct OneField<T> {
    name: &'static str,
    of: PhantomData<fn() -> T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneField<T> {
    type Value = (T, OtherFields);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with {}", self.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut value = None;
        let mut others = OtherFields::default();
        while let Some(other) = map.next_key_seed(OtherThan(self.name))? {
            match other {
                Some(name) => others.0.push((name, Kept(map.next_value()?))),
                None if value.is_some() => return Err(A::Error::duplicate_field(self.name)),
                None => value = Some(map.next_value()?),
            }
        }
        Ok((value.ok_or_else(|| A::Error::missing_field(self.name))?, others))
    }
}

/// A field's name, unless it is this one.
struct OtherThan(&'static str);

impl<'de> DeserializeSeed<'de> for OtherThan {
    type Value = Option<Box<str>>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for OtherThan {
    type Value = Option<Box<str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok((name != self.0).then(|| name.into()))
    }
}

/// Writes `data`.
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
            EventData::Ping(ping) => self.fields(to, MESSAGE, &ping.message),
            EventData::Unknown(unknown) => unknown.data.serialize(to),
            EventData::Unreadable(unreadable) => unreadable.data.serialize(to),
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
        for (name, value) in self.1.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
