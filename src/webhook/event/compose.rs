//! Creates events. Each created event obeys the protocol's rules for its type.

use alloc::string::String;

use super::body::EventBody;
use super::data::{EventData, OtherFields};
use super::envelope::{ApiVersion, Origin, OriginSource};
use super::received::Event;
use crate::Timestamp;
use crate::id::{AccountId, EventId};
use crate::json::{JsonObject, MAX_JSON_LEN};
use crate::model::{Appointment, Call, Contact, TransferredCall};

/// A new event without its type and data. The method for a type adds the type and the data.
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::id::{AccountId, EventId};
/// use call_assistant::json::JsonObject;
/// use call_assistant::model::Appointment;
/// use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
///
/// let event = NewEvent::new(
///     EventId::from_random([7; 16]),
///     AccountId::parse("acct_1")?,
///     ApiVersion::parse("2026-01-15")?,
///     Origin::voice(),
///     Timestamp::from_unix(1_767_225_600).unwrap(),
/// );
/// let appointment = Appointment::from(JsonObject::parse(r#"{"id":"appt_7","status":"booked"}"#)?);
///
/// let body: EventBody = event.appointment_cancelled(&appointment)?;
/// assert!(body.as_str().ends_with(r#""data":{"object":{"id":"appt_7","status":"cancelled"}}}"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the event is longer than [`MAX_JSON_LEN`] bytes, each method for a type returns
/// [`NewEventError::TooLong`], because no receiver reads such a long event. Some methods can also
/// return other errors.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct NewEvent {
    id: EventId,
    account_id: AccountId,
    api_version: ApiVersion,
    origin: Origin,
    created_at: Timestamp,
}

impl NewEvent {
    /// Creates an event at the time `now`. Each event needs its own id, which is the same for all
    /// endpoints.
    ///
    /// If your program may create the event of one change twice, take `id` from
    /// [`EventId::derived`], and take `now` from the stored change. If a database column stores
    /// `created_at` in microseconds, pass [`now.floor_to_micros()`](Timestamp::floor_to_micros).
    /// The row and the event then have the same instant.
    pub fn new(
        id: EventId,
        account_id: AccountId,
        api_version: ApiVersion,
        origin: Origin,
        now: Timestamp,
    ) -> Self {
        Self { id, account_id, api_version, origin, created_at: now }
    }

    /// Creates `call.ended`, for a call that is over and has its summary.
    ///
    /// # Errors
    /// Returns an error if `ended_at` or `summary` is missing, or if the event is too long.
    pub fn call_ended(self, call: &Call) -> Result<EventBody, NewEventError> {
        if call.ended_at.is_none() {
            return Err(NewEventError::CallNotEnded);
        }
        if call.summary.is_none() {
            return Err(NewEventError::SummaryNotReady);
        }
        self.write(EventData::CallEnded(call.clone()))
    }

    /// Creates `call.transferred`.
    ///
    /// # Errors
    /// Returns an error if the event is too long.
    pub fn call_transferred(self, call: &TransferredCall) -> Result<EventBody, NewEventError> {
        self.write(EventData::CallTransferred(call.clone()))
    }

    /// Creates `appointment.created`.
    ///
    /// # Errors
    /// Returns an error if the event is too long.
    pub fn appointment_created(
        self,
        appointment: &Appointment,
    ) -> Result<EventBody, NewEventError> {
        self.write(EventData::AppointmentCreated(appointment.clone()))
    }

    /// Creates `appointment.updated`, for an appointment that was edited, moved or restored. If the
    /// assistant moved the appointment, use [`voice_reschedule`](Self::voice_reschedule) instead.
    ///
    /// # Errors
    /// Returns an error if the event is too long.
    pub fn appointment_updated(
        self,
        appointment: &Appointment,
    ) -> Result<EventBody, NewEventError> {
        self.write(EventData::AppointmentUpdated(appointment.clone()))
    }

    /// Creates `appointment.cancelled`. The event contains the appointment with the status
    /// `cancelled`.
    ///
    /// # Errors
    /// Returns an error if the event is too long.
    pub fn appointment_cancelled(
        self,
        appointment: &Appointment,
    ) -> Result<EventBody, NewEventError> {
        self.write(EventData::AppointmentCancelled(appointment.cancelled()))
    }

    /// Creates the two events for an appointment that the assistant moved. The first event is
    /// `appointment.cancelled` for the old appointment. The second event is `appointment.created`
    /// for the new appointment, which has a new id. Store both events together, and send both
    /// events in this order.
    ///
    /// # Errors
    /// Returns an error if the origin is not the assistant, if both events have the same id, or if
    /// an event is too long. Also returns an error if both appointments have the same `id`. If an
    /// appointment has no `id`, equal objects count as the same appointment.
    pub fn voice_reschedule(
        self,
        created_id: EventId,
        old: &Appointment,
        new: &Appointment,
    ) -> Result<[EventBody; 2], NewEventError> {
        if self.origin.source != OriginSource::Voice {
            return Err(NewEventError::NotVoice);
        }
        if created_id == self.id {
            return Err(NewEventError::SameEventId);
        }
        let same = match (old.id(), new.id()) {
            (Some(old), Some(new)) => old == new,
            _ => old == new,
        };
        if same {
            return Err(NewEventError::SameAppointment);
        }
        let created = Self { id: created_id, ..self.clone() };
        Ok([self.appointment_cancelled(old)?, created.appointment_created(new)?])
    }

    /// Creates `contact.created`.
    ///
    /// # Errors
    /// Returns an error if the contact's name was only inferred, or if the event is too long. When
    /// a person approves an inferred name, the contact counts as added. Then create this event.
    pub fn contact_created(
        self,
        contact: &Contact,
        name: NameSource,
    ) -> Result<EventBody, NewEventError> {
        name.check()?;
        self.write(EventData::ContactCreated(contact.clone()))
    }

    /// Creates `contact.updated`.
    ///
    /// # Errors
    /// Returns an error if the contact's name was only inferred, or if the event is too long.
    pub fn contact_updated(
        self,
        contact: &Contact,
        name: NameSource,
    ) -> Result<EventBody, NewEventError> {
        name.check()?;
        self.write(EventData::ContactUpdated(contact.clone()))
    }

    /// Creates `usage.threshold_reached`. If [`UsageWatch::record`](super::UsageWatch::record)
    /// returns true, call this method. The protocol does not define the counters' names.
    ///
    /// # Errors
    /// Returns an error if the counters have a field `object`, or if the event is too long. The
    /// `data` of this type of event has no field `object`.
    pub fn usage_threshold_reached(
        self,
        counters: &JsonObject,
    ) -> Result<EventBody, NewEventError> {
        if counters.get("object").is_some() {
            return Err(NewEventError::ObjectInCounters);
        }
        self.write(EventData::UsageThresholdReached(counters.clone()))
    }

    /// Creates `ping`, with a text that confirms the test.
    ///
    /// # Errors
    /// Returns an error if the event is too long.
    pub fn ping(self, message: impl Into<String>) -> Result<EventBody, NewEventError> {
        self.write(EventData::Ping { message: message.into() })
    }

    fn write(self, data: EventData) -> Result<EventBody, NewEventError> {
        let body = EventBody::write(&Event {
            id: self.id,
            created_at: self.created_at,
            api_version: Some(self.api_version),
            account_id: self.account_id,
            origin: Some(self.origin),
            data,
            others: OtherFields::default(),
        });
        match body.as_bytes().len() {
            len if len > MAX_JSON_LEN => Err(NewEventError::TooLong { len }),
            _ => Ok(body),
        }
    }
}

/// The source of a contact's name. This source decides whether events report the contact.
///
/// Closed: for each new source, it must be decided whether events report the contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameSource {
    /// A name that the account's owner entered or approved.
    Curated,
    /// A name from an address book.
    Imported,
    /// A name that the assistant inferred from a call, and that no person has approved.
    Inferred,
}

impl NameSource {
    fn check(self) -> Result<(), NewEventError> {
        match self {
            Self::Curated | Self::Imported => Ok(()),
            Self::Inferred => Err(NewEventError::InferredName),
        }
    }
}

/// The reason why an event cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NewEventError {
    /// An event of more than [`MAX_JSON_LEN`] bytes.
    #[error("event has {len} bytes, more than {MAX_JSON_LEN}")]
    #[non_exhaustive]
    TooLong {
        /// The length of the event, in bytes.
        len: usize,
    },
    /// A call without `ended_at`.
    #[error("call.ended: the call has no ended_at")]
    CallNotEnded,
    /// A call without `summary`.
    #[error("call.ended: the call has no summary")]
    SummaryNotReady,
    /// A reschedule whose old and new appointments are the same.
    #[error("voice reschedule: the new appointment is the old one")]
    SameAppointment,
    /// A reschedule whose two events have the same id.
    #[error("voice reschedule: both events have the same id")]
    SameEventId,
    /// A reschedule whose origin is not the assistant.
    #[error("voice reschedule: the origin is not voice")]
    NotVoice,
    /// A contact with an inferred name that no person has approved.
    #[error("contact: its name was inferred, and no person has approved it")]
    InferredName,
    /// A field `object` among the counters.
    #[error("usage.threshold_reached: the counters have a field object")]
    ObjectInCounters,
}
