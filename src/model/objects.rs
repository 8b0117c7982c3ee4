//! The objects inside events. The protocol describes these objects only in part.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::Call;
use crate::Timestamp;
use crate::id::AppointmentId;
use crate::json::{
    self, FromJson, JsonObject, Names, ParseError, RawJson, Tracker, deserialize, json_object,
    open_enum, read_object,
};

/// A call that the assistant transferred to a person.
///
/// The [protocol](crate::guide::protocol) defines `target_label` and `transferred_at` without their
/// types. [`new`](Self::new) writes a string and an RFC 3339 time. A received value of any type or
/// form is kept, and is written again unchanged.
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::id::CallId;
/// use call_assistant::model::{Call, TransferredCall};
///
/// let started = Timestamp::from_unix(1_772_357_400).unwrap();
/// let call = Call::new(CallId::parse("call_8fK2").unwrap(), started, started);
/// let transferred = TransferredCall::new(call, "Front desk", started);
/// assert_eq!(transferred.target_label().as_deref(), Some("Front desk"));
/// assert_eq!(transferred.transferred_at(), Some(started));
///
/// let text = String::from_utf8(transferred.to_json()).unwrap().replace(r#""Front desk""#, "7");
/// let other = TransferredCall::from_json(text.as_bytes()).unwrap();
/// assert_eq!(other.target_label(), None); // it is no string, and kept
/// assert_eq!(other.target_label_json().unwrap().get(), "7");
/// assert_eq!(other.transferred_at_json().unwrap().get(), r#""2026-03-01T09:30:00Z""#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TransferredCall {
    /// The call.
    #[serde(flatten)]
    pub call: Call,
    #[serde(flatten)]
    transfer: Transfer,
}

json_object! {
    /// The two fields of a transfer, besides the fields of the call.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
    struct Transfer {
        #[serde(skip_serializing_if = "Kept::is_absent")]
        target_label: Kept,
        #[serde(skip_serializing_if = "Kept::is_absent")]
        transferred_at: Kept,
    }
}

impl TransferredCall {
    /// Creates a transfer to the person or place with this label, such as "Front desk".
    #[must_use]
    pub fn new(call: Call, target_label: &str, transferred_at: Timestamp) -> Self {
        let transfer = Transfer {
            target_label: Kept::new(target_label),
            transferred_at: Kept::new(&transferred_at),
        };
        Self { call, transfer }
    }

    /// Returns the label of the person or place, if the label is a string.
    #[must_use]
    pub fn target_label(&self) -> Option<String> {
        serde_json::from_str(self.target_label_json()?.get()).ok()
    }

    /// Returns the received value of `target_label`, of any type, or `None` if the field is
    /// missing.
    #[must_use]
    pub fn target_label_json(&self) -> Option<&RawValue> {
        self.transfer.target_label.get()
    }

    /// Returns the time of the transfer, if the field contains an RFC 3339 time.
    #[must_use]
    pub fn transferred_at(&self) -> Option<Timestamp> {
        serde_json::from_str(self.transferred_at_json()?.get()).ok()
    }

    /// Returns the received value of `transferred_at`, of any type, or `None` if the field is
    /// missing.
    #[must_use]
    pub fn transferred_at_json(&self) -> Option<&RawValue> {
        self.transfer.transferred_at.get()
    }

    /// Reads a transferred call from JSON, by the rules in [`json`](crate::json).
    ///
    /// # Errors
    /// Returns the fault of the JSON and its position, but not the received value.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ParseError> {
        json::read(bytes)
    }

    /// Writes a transferred call as JSON without spaces.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl<'de> FromJson<'de> for TransferredCall {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        let (call, transfer) = read_object(from, tracker, Default::default(), Names::Text)?;
        Ok(Self { call, transfer })
    }
}

deserialize!(TransferredCall);

/// A value as received, or no value. (An `Option` would read null as no value.)
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
struct Kept(Option<RawJson>);

impl Kept {
    #[expect(clippy::expect_used, reason = "strings and times can always be written")]
    fn new<T: Serialize + ?Sized>(value: &T) -> Self {
        Self(Some(RawJson(to_raw_value(value).expect("a string or a time"))))
    }

    fn get(&self) -> Option<&RawValue> {
        self.0.as_ref().map(|json| &*json.0)
    }

    fn is_absent(&self) -> bool {
        self.0.is_none()
    }
}

impl<'de> FromJson<'de> for Kept {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        RawJson::read(from, tracker).map(Some).map(Self)
    }

    fn absent() -> Option<Self> {
        Some(Self(None))
    }
}

open_enum! {
    /// The state of an appointment. The protocol defines one value.
    pub enum AppointmentStatus {
        /// An appointment that will not take place.
        Cancelled = "cancelled",
    }
}

/// An appointment. The [protocol](crate::guide::protocol) defines only its `status`.
///
/// The object is kept as received. Methods read the fields `status` and `id`. All fields are in
/// [`object`](Self::object).
///
/// ```
/// use call_assistant::json::JsonObject;
/// use call_assistant::model::{Appointment, AppointmentStatus};
///
/// let booked = JsonObject::parse(r#"{"id":"appt_7","status":"confirmed","room":3}"#)?;
/// let cancelled = Appointment::from(booked).cancelled();
///
/// assert_eq!(cancelled.status(), Some(AppointmentStatus::Cancelled));
/// assert_eq!(cancelled.object().as_str(), r#"{"id":"appt_7","status":"cancelled","room":3}"#);
/// # Ok::<(), call_assistant::json::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Appointment(JsonObject);

impl Appointment {
    /// Returns the whole object.
    #[must_use]
    pub fn object(&self) -> &JsonObject {
        &self.0
    }

    /// Returns the `status`, if it is a string.
    #[must_use]
    pub fn status(&self) -> Option<AppointmentStatus> {
        self.0.get_str("status").map(|status| AppointmentStatus::from(status.as_str()))
    }

    /// Returns the `id`, if it is a valid id. (The protocol says that an appointment has an id, but
    /// does not name the field.)
    #[must_use]
    pub fn id(&self) -> Option<AppointmentId> {
        AppointmentId::parse(&self.0.get_str("id")?).ok()
    }

    /// Returns the appointment with the status `cancelled` and all other fields unchanged.
    #[must_use]
    pub fn cancelled(&self) -> Self {
        Self(self.0.with_str("status", AppointmentStatus::Cancelled.as_str()))
    }

    /// Reads an appointment from JSON, by the rules in [`json`](crate::json).
    ///
    /// # Errors
    /// Returns the fault of the JSON and its position, but not the received value.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ParseError> {
        json::read(bytes)
    }

    /// Writes an appointment as JSON without spaces.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl From<JsonObject> for Appointment {
    fn from(object: JsonObject) -> Self {
        Self(object)
    }
}

impl<'de> FromJson<'de> for Appointment {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        JsonObject::read(from, tracker).map(Self)
    }
}

deserialize!(Appointment);

/// A contact in the customer's address book. The [protocol](crate::guide::protocol) defines no
/// field of a contact.
///
/// ```
/// use call_assistant::model::Contact;
///
/// let contact = Contact::from_json(br#"{"id":"cont_9","name":"Kari"}"#)?;
/// assert_eq!(contact.object().get_str("name").as_deref(), Some("Kari"));
/// # Ok::<(), call_assistant::json::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Contact(JsonObject);

impl Contact {
    /// Returns the whole object.
    #[must_use]
    pub fn object(&self) -> &JsonObject {
        &self.0
    }

    /// Reads a contact from JSON, by the rules in [`json`](crate::json).
    ///
    /// # Errors
    /// Returns the fault of the JSON and its position, but not the received value.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ParseError> {
        json::read(bytes)
    }

    /// Writes a contact as JSON without spaces.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl From<JsonObject> for Contact {
    fn from(object: JsonObject) -> Self {
        Self(object)
    }
}

impl<'de> FromJson<'de> for Contact {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        JsonObject::read(from, tracker).map(Self)
    }
}

deserialize!(Contact);
