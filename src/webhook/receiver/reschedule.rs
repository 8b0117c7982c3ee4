//! The two events of one appointment that was moved in a call.

use core::time::Duration;

use serde_json::value::RawValue;

use crate::model::Appointment;
use crate::webhook::event::{Event, EventData, OriginSource};

/// Says how long after the old appointment was cancelled the new one is created at most, unless the
/// host chooses another span: one minute. The assistant does both in one conversation.
pub const RESCHEDULE_SPAN: Duration = Duration::from_secs(60);

/// Pairs the two events of an appointment that the assistant moved: it cancels the old appointment
/// and creates one with a new id.
///
/// ```
/// use call_assistant::webhook::event::Event;
/// use call_assistant::webhook::receiver::{RESCHEDULE_SPAN, Reschedule, RescheduleMatch};
///
/// fn describe(event: &Event, recent: &[Event]) -> &'static str {
///     match Reschedule::find(event, recent, &["contact_id"], RESCHEDULE_SPAN) {
///         RescheduleMatch::One(_) => "moved",
///         _ => "cancelled, or booked",
///     }
/// }
/// ```
///
/// Neither event names the other, so the pair is a judgement: both events belong to the same
/// account and come from the voice assistant, the new appointment was created after the old one was
/// cancelled and within a span, the ids differ, and no field that the caller names differs (for
/// example, the contact). Each event is correct by itself; pair them to tell a person "moved"
/// instead of "cancelled" and "booked".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reschedule<'e> {
    /// The event of the old appointment.
    pub cancelled: &'e Event,
    /// The event of the new appointment.
    pub created: &'e Event,
}

/// Tells which of several events completes a [`Reschedule`].
///
/// Match all three variants: each means something else to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum RescheduleMatch<'e> {
    /// No event fits, or it has not arrived yet.
    None,
    /// One event fits.
    One(Reschedule<'e>),
    /// More than one event fits, so the pair is unknown.
    Ambiguous,
}

impl<'e> Reschedule<'e> {
    /// Pairs two events, in either order, if they are one reschedule. `fields` names the fields of
    /// an appointment that must be equal where both appointments have them.
    #[must_use]
    pub fn from_events(
        one: &'e Event,
        other: &'e Event,
        fields: &[&str],
        span: Duration,
    ) -> Option<Self> {
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

    /// Finds the other event of a reschedule among `others`. See
    /// [`from_events`](Self::from_events).
    pub fn find(
        event: &'e Event,
        others: impl IntoIterator<Item = &'e Event>,
        fields: &[&str],
        span: Duration,
    ) -> RescheduleMatch<'e> {
        let mut pairs =
            others.into_iter().filter_map(|other| Self::from_events(event, other, fields, span));
        let Some(pair) = pairs.next() else { return RescheduleMatch::None };
        let ids = |pair: &Self| (&pair.cancelled.id, &pair.created.id);
        // A copy of the same event is not another event.
        match pairs.all(|other| ids(&other) == ids(&pair)) {
            true => RescheduleMatch::One(pair),
            false => RescheduleMatch::Ambiguous,
        }
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
