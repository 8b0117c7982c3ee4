//! The two events of one appointment that was moved in a call.

use core::time::Duration;

use serde_json::value::RawValue;

use crate::model::Appointment;
use crate::webhook::event::{Event, EventData, OriginSource};

/// How long after the old appointment was cancelled the new one is made at most, for those who have
/// no better number: a minute, since the assistant does both in one conversation.
pub const RESCHEDULE_SPAN: Duration = Duration::from_secs(60);

/// An appointment that the assistant moved: it cancels the old one and makes a new one with a new
/// id, as two events.
///
/// Nothing in the two says that they belong together, so this is a judgement: the same account,
/// both from the voice assistant, the new one made after the old one was cancelled and within a
/// span, different ids, and no contradiction in the fields that the caller names (say, who the
/// appointment is for). Each event is right by itself; pairing them is for telling a person "moved"
/// rather than "cancelled" and "booked".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reschedule<'e> {
    /// The event of the old appointment.
    pub cancelled: &'e Event,
    /// The event of the new appointment.
    pub created: &'e Event,
}

/// Which of several events is an event's other half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Pairing<'e> {
    /// None of them, or none yet: they arrive in any order.
    None,
    /// This one.
    One(Reschedule<'e>),
    /// More than one fits, so nothing is known.
    Ambiguous,
}

impl<'e> Reschedule<'e> {
    /// Judges two events, in any order. `fields` names fields of an appointment which, where both
    /// have them, must be the same.
    #[must_use]
    pub fn of(one: &'e Event, other: &'e Event, fields: &[&str], span: Duration) -> Option<Self> {
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

    /// Finds an event's other half among those that arrived before it. See [`of`](Self::of).
    pub fn find(
        event: &'e Event,
        others: impl IntoIterator<Item = &'e Event>,
        fields: &[&str],
        span: Duration,
    ) -> Pairing<'e> {
        let mut pairs = others.into_iter().filter_map(|other| Self::of(event, other, fields, span));
        let Some(pair) = pairs.next() else { return Pairing::None };
        let ids = |pair: &Self| (&pair.cancelled.id, &pair.created.id);
        // A copy of the same event is no other.
        match pairs.all(|other| ids(&other) == ids(&pair)) {
            true => Pairing::One(pair),
            false => Pairing::Ambiguous,
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
