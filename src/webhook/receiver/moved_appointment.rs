//! The two events of one appointment that was moved in a call.

use core::time::Duration;

use serde_json::value::RawValue;

use crate::model::Appointment;
use crate::webhook::event::{Event, EventData, OriginSource};

/// The two events of an appointment that the assistant moved. The assistant cancels the old
/// appointment and creates an appointment with a new id.
///
/// ```
/// use call_assistant::webhook::event::Event;
/// use call_assistant::webhook::receiver::MovedAppointment;
///
/// fn describe(event: &Event, recent: &[Event]) -> &'static str {
///     match MovedAppointment::find(event, recent, &["contact_id"], MovedAppointment::SPAN) {
///         Some(_) => "moved",
///         None => "cancelled, or booked",
///     }
/// }
/// ```
///
/// The events do not refer to each other, so the following conditions decide. Both events belong to
/// the same account and come from the voice assistant. The creation is not earlier than the
/// cancellation, and follows within a span that the caller chooses. If the old appointment has an
/// id, the new appointment has another id. The fields that the caller lists, for example the
/// contact, are equal if both appointments have them.
///
/// Each event is correct by itself. Pair the events to show a person "moved" instead of "cancelled"
/// and "booked".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovedAppointment<'e> {
    /// The event of the old appointment.
    pub cancelled: &'e Event,
    /// The event of the new appointment.
    pub created: &'e Event,
}

impl<'e> MovedAppointment<'e> {
    /// The default for the longest time from the cancellation to the creation: one minute. The
    /// assistant makes both changes in one conversation.
    pub const SPAN: Duration = Duration::from_secs(60);

    /// Finds the other event of a reschedule among `others`. `fields` lists the fields that must be
    /// equal if both appointments have them.
    ///
    /// Returns `None` if no event fits, or if several events fit. Several copies of one event count
    /// as one event.
    #[must_use]
    pub fn find(
        event: &'e Event,
        others: impl IntoIterator<Item = &'e Event>,
        fields: &[&str],
        span: Duration,
    ) -> Option<Self> {
        let mut pairs =
            others.into_iter().filter_map(|other| Self::pair(event, other, fields, span));
        let pair = pairs.next()?;
        let ids = |pair: &Self| (&pair.cancelled.id, &pair.created.id);
        pairs.all(|other| ids(&other) == ids(&pair)).then_some(pair)
    }

    fn pair(one: &'e Event, other: &'e Event, fields: &[&str], span: Duration) -> Option<Self> {
        let (cancelled, old, created, new) = match (&one.data, &other.data) {
            (EventData::AppointmentCancelled(old), EventData::AppointmentCreated(new)) => {
                (one, old, other, new)
            }
            (EventData::AppointmentCreated(new), EventData::AppointmentCancelled(old)) => {
                (other, old, one, new)
            }
            _ => return None,
        };
        let timely = cancelled.created_at <= created.created_at
            && created.created_at.since(cancelled.created_at) <= span;
        let fits = timely
            && cancelled.account_id == created.account_id
            && [cancelled, created].into_iter().all(is_by_voice)
            && (old.id().is_none() || old.id() != new.id())
            && fields.iter().all(|field| agree(old, new, field));
        fits.then_some(Self { cancelled, created })
    }
}

fn is_by_voice(event: &Event) -> bool {
    event.origin.as_ref().is_some_and(|origin| origin.source == OriginSource::Voice)
}

fn agree(old: &Appointment, new: &Appointment, field: &str) -> bool {
    match (old.object().get(field), new.object().get(field)) {
        (Some(old), Some(new)) => RawValue::get(old) == RawValue::get(new),
        _ => true,
    }
}
