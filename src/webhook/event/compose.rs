//! How the service makes events: what the specification says of each type holds by construction.

use alloc::string::String;

use super::body::EventBody;
use super::data::{EventData, Ping};
use super::envelope::{ApiVersion, Origin, OriginSource};
use super::event::Event;
use super::read::Head;
use super::usage::ThresholdReached;
use crate::Timestamp;
use crate::id::{AccountId, EventId};
use crate::json::JsonObject;
use crate::model::{Appointment, Call, Contact, TransferredCall};

/// An event about to be made: everything but what it is about.
///
/// One method for each type says that, checks what the specification says of the type, and writes
/// the event, once.
///
/// ```
/// use call_assistant::id::{AccountId, EventId};
/// use call_assistant::json::JsonObject;
/// use call_assistant::model::Appointment;
/// use call_assistant::Timestamp;
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
/// let body: EventBody = event.appointment_cancelled(&appointment);
/// assert!(body.as_str().ends_with(r#""data":{"object":{"id":"appt_7","status":"cancelled"}}}"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct NewEvent(Head);

impl NewEvent {
    /// An event made now. Draw the id once per event, not once per endpoint.
    pub fn new(
        id: EventId,
        account_id: AccountId,
        api_version: ApiVersion,
        origin: Origin,
        now: Timestamp,
    ) -> Self {
        Self(Head {
            id,
            created_at: now,
            api_version: Some(api_version),
            account_id,
            origin: Some(origin),
        })
    }

    /// `call.ended`: the call has ended and its summary is ready.
    ///
    /// # Errors
    /// It has not, or it is not.
    pub fn call_ended(self, call: &Call) -> Result<EventBody, NewEventError> {
        if call.ended_at.is_none() {
            return Err(NewEventError::CallNotEnded);
        }
        if call.summary.is_none() {
            return Err(NewEventError::SummaryNotReady);
        }
        Ok(self.about(EventData::CallEnded(call.clone())))
    }

    /// `call.transferred`.
    #[must_use]
    pub fn call_transferred(self, call: &TransferredCall) -> EventBody {
        self.about(EventData::CallTransferred(call.clone()))
    }

    /// `appointment.created`.
    #[must_use]
    pub fn appointment_created(self, appointment: &Appointment) -> EventBody {
        self.about(EventData::AppointmentCreated(appointment.clone()))
    }

    /// `appointment.updated`: edited, moved or restored. Where the assistant moves an appointment,
    /// see [`voice_reschedule`](Self::voice_reschedule).
    #[must_use]
    pub fn appointment_updated(self, appointment: &Appointment) -> EventBody {
        self.about(EventData::AppointmentUpdated(appointment.clone()))
    }

    /// `appointment.cancelled`: the appointment with the status `cancelled`, whatever it was.
    #[must_use]
    pub fn appointment_cancelled(self, appointment: &Appointment) -> EventBody {
        self.about(EventData::AppointmentCancelled(appointment.cancelled()))
    }

    /// What the assistant's rescheduling makes: `appointment.cancelled` for the old appointment,
    /// then `appointment.created` for the new one, which has a new id. Store both together and
    /// send them in this order.
    ///
    /// # Errors
    /// The event ids are the same, the two appointments are (the same `id`, or without one the
    /// same object), or the origin is not the assistant.
    pub fn voice_reschedule(
        self,
        created_id: EventId,
        old: &Appointment,
        new: &Appointment,
    ) -> Result<[EventBody; 2], NewEventError> {
        if self.0.origin.as_ref().map(|origin| &origin.source) != Some(&OriginSource::Voice) {
            return Err(NewEventError::NotVoice);
        }
        if created_id == self.0.id {
            return Err(NewEventError::SameEventId);
        }
        let same = match (old.id(), new.id()) {
            (Some(old), Some(new)) => old == new,
            _ => old == new,
        };
        if same {
            return Err(NewEventError::SameAppointment);
        }
        let created = Self(Head { id: created_id, ..self.0.clone() });
        Ok([self.appointment_cancelled(old), created.appointment_created(new)])
    }

    /// `contact.created`.
    #[must_use]
    pub fn contact_created(self, contact: &ApprovedContact) -> EventBody {
        self.about(EventData::ContactCreated(contact.0.clone()))
    }

    /// `contact.updated`.
    #[must_use]
    pub fn contact_updated(self, contact: &ApprovedContact) -> EventBody {
        self.about(EventData::ContactUpdated(contact.0.clone()))
    }

    /// `usage.threshold_reached`, with what [`UsageWatch`](super::UsageWatch) gave as its reason.
    /// The specification does not name the counters.
    ///
    /// # Errors
    /// The counters have a field `object`, which this event has not.
    pub fn usage_threshold_reached(
        self,
        _reason: ThresholdReached,
        counters: &JsonObject,
    ) -> Result<EventBody, NewEventError> {
        if counters.get("object").is_some() {
            return Err(NewEventError::ObjectInCounters);
        }
        Ok(self.about(EventData::UsageThresholdReached(counters.clone())))
    }

    /// `ping`, with a text that confirms the test.
    #[must_use]
    pub fn ping(self, message: impl Into<String>) -> EventBody {
        self.about(EventData::Ping(Ping { message: message.into() }))
    }

    fn about(self, data: EventData) -> EventBody {
        EventBody::write(&Event::new(self.0, data))
    }
}

/// A contact whose name a person stands behind. Only such a contact makes events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedContact(Contact);

impl ApprovedContact {
    /// A contact, unless its name is the assistant's guess that nobody has approved yet. Once
    /// somebody does, it is added: `contact.created`.
    #[must_use]
    pub fn new(contact: Contact, name: NameSource) -> Option<Self> {
        match name {
            NameSource::Entered | NameSource::Imported | NameSource::Approved => {
                Some(Self(contact))
            }
            NameSource::Inferred => None,
        }
    }

    /// The contact.
    #[must_use]
    pub fn contact(&self) -> &Contact {
        &self.0
    }
}

/// Where a contact's name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameSource {
    /// The account's owner entered it.
    Entered,
    /// It comes from an address book.
    Imported,
    /// The assistant inferred it from a call.
    Inferred,
    /// The assistant inferred it, and a person approved it.
    Approved,
}

/// Why there is no such event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NewEventError {
    /// The call has no `ended_at`.
    #[error("call.ended: the call has no ended_at")]
    CallNotEnded,
    /// The call has no `summary`.
    #[error("call.ended: the call has no summary")]
    SummaryNotReady,
    /// Old and new appointment are the same.
    #[error("voice reschedule: the new appointment is the old one")]
    SameAppointment,
    /// Both events have the same id.
    #[error("voice reschedule: both events have the same id")]
    SameEventId,
    /// The origin is not the assistant.
    #[error("voice reschedule: the origin is not voice")]
    NotVoice,
    /// The counters have a field `object`.
    #[error("usage.threshold_reached: the counters have a field object")]
    ObjectInCounters,
}
