//! The objects inside events that the specification gives only in part.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Call, CallCaller};
use crate::Timestamp;
use crate::id::{AppointmentId, CallId};
use crate::json::open_enum;
use crate::json::{JsonObject, json_body, read_object};

/// A call that the assistant handed over to a person, with two facts about the transfer.
///
/// The specification names `target_label` and `transferred_at` without their types. A text and an
/// RFC 3339 instant are what they look like, and [`new`](Self::new) writes those; whatever else
/// arrives is kept and written back unchanged.
#[derive(Clone)]
pub struct TransferredCall {
    /// The call.
    pub call: Call,
    target_label: Option<Box<RawValue>>,
    transferred_at: Option<Box<RawValue>>,
}

impl TransferredCall {
    /// A call transferred at an instant to somebody so labelled ("Front desk").
    #[must_use]
    pub fn new(call: Call, target_label: &str, transferred_at: Timestamp) -> Self {
        Self {
            call,
            target_label: serde_json::value::to_raw_value(target_label).ok(),
            transferred_at: serde_json::value::to_raw_value(&transferred_at).ok(),
        }
    }

    /// To whom, if that came as a text.
    #[must_use]
    pub fn target_label(&self) -> Option<String> {
        serde_json::from_str(self.target_label_json()?.get()).ok()
    }

    /// `target_label` as it came, whatever its type. `None` only if it was not there.
    #[must_use]
    pub fn target_label_json(&self) -> Option<&RawValue> {
        self.target_label.as_deref()
    }

    /// When, if that came as an RFC 3339 instant.
    #[must_use]
    pub fn transferred_at(&self) -> Option<Timestamp> {
        serde_json::from_str(self.transferred_at_json()?.get()).ok()
    }

    /// `transferred_at` as it came, whatever its type. `None` only if it was not there.
    #[must_use]
    pub fn transferred_at_json(&self) -> Option<&RawValue> {
        self.transferred_at.as_deref()
    }

    fn texts(&self) -> [Option<&str>; 2] {
        [self.target_label_json(), self.transferred_at_json()].map(|json| json.map(RawValue::get))
    }
}

impl PartialEq for TransferredCall {
    /// The same call, and the same text in both facts.
    fn eq(&self, other: &Self) -> bool {
        self.call == other.call && self.texts() == other.texts()
    }
}

impl Eq for TransferredCall {}

impl fmt::Debug for TransferredCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [target_label, transferred_at] = self.texts();
        f.debug_struct("TransferredCall")
            .field("call", &self.call)
            .field("target_label", &target_label)
            .field("transferred_at", &transferred_at)
            .finish()
    }
}

/// The two facts beside a call's own fields.
#[derive(Serialize)]
struct Facts<'a> {
    #[serde(flatten)]
    call: &'a Call,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_label: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transferred_at: Option<&'a RawValue>,
}

impl Serialize for TransferredCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let facts = Facts {
            call: &self.call,
            target_label: self.target_label_json(),
            transferred_at: self.transferred_at_json(),
        };
        facts.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TransferredCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields::deserialize(deserializer)?;
        Ok(Self {
            call: Call {
                id: fields.id,
                caller: fields.caller,
                started_at: fields.started_at,
                answered_at: fields.answered_at,
                ended_at: fields.ended_at,
                duration_seconds: fields.duration_seconds,
                summary: fields.summary,
                appointment_ids: fields.appointment_ids,
                created_at: fields.created_at,
            },
            target_label: fields.target_label.0,
            transferred_at: fields.transferred_at.0,
        })
    }
}

/// A call's fields and the two facts, side by side as they travel: read in one pass, so that an
/// error is found where it stands.
struct Fields {
    id: CallId,
    caller: CallCaller,
    started_at: Timestamp,
    answered_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    duration_seconds: Option<u64>,
    summary: Option<String>,
    appointment_ids: Vec<AppointmentId>,
    created_at: Timestamp,
    target_label: Fact,
    transferred_at: Fact,
}

read_object!(Fields {
    id: required,
    caller: required,
    started_at: required,
    answered_at: nullable,
    ended_at: nullable,
    duration_seconds: nullable,
    summary: nullable,
    appointment_ids: required,
    created_at: required,
    target_label: nullable,
    transferred_at: nullable,
});

/// A fact as it came. An `Option` alone would take null for one that did not come.
#[derive(Default)]
struct Fact(Option<Box<RawValue>>);

impl<'de> Deserialize<'de> for Fact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::deserialize(deserializer).map(Some).map(Self)
    }
}

json_body!(TransferredCall);

open_enum! {
    /// Where an appointment stands. Only one value is specified.
    pub enum AppointmentStatus {
        /// It will not take place.
        Cancelled = "cancelled",
    }
}

/// An appointment: an object that the specification leaves open but for its `status`.
///
/// It is kept as it came; the two things this crate looks at have accessors, the rest is in
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Appointment(JsonObject);

impl Appointment {
    /// The `status`, if there is one and it is a text.
    #[must_use]
    pub fn status(&self) -> Option<AppointmentStatus> {
        self.0.get_str("status").map(|status| AppointmentStatus::from(status.as_str()))
    }

    /// The `id`, if there is one that is an id: the specification says that a rescheduled
    /// appointment gets a new one, but not what the field is called.
    #[must_use]
    pub fn id(&self) -> Option<AppointmentId> {
        AppointmentId::parse(&self.0.get_str("id")?).ok()
    }

    /// The same appointment with the status `cancelled`, everything else unchanged.
    #[must_use]
    pub fn cancelled(&self) -> Self {
        let status = AppointmentStatus::Cancelled;
        // An object whose names are no text cannot be edited; it stays as it is.
        Self(self.0.with_str("status", status.as_str()).unwrap_or_else(|| self.0.clone()))
    }

    /// All that is known of it.
    #[must_use]
    pub fn object(&self) -> &JsonObject {
        &self.0
    }
}

impl From<JsonObject> for Appointment {
    fn from(object: JsonObject) -> Self {
        Self(object)
    }
}

json_body!(Appointment);

/// A contact in the customer's address book: an object that the specification leaves open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Contact(JsonObject);

impl Contact {
    /// All that is known of it.
    #[must_use]
    pub fn object(&self) -> &JsonObject {
        &self.0
    }
}

impl From<JsonObject> for Contact {
    fn from(object: JsonObject) -> Self {
        Self(object)
    }
}

json_body!(Contact);
