//! Each endpoint was told what the attempts of a transaction mean for it, in that transaction.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    DeliveryColumns, DeliveryStatus, DisabledReason, EndpointColumns, EndpointHealth,
};

use super::deliveries::{Assumed, Assumption, Outcomes, Told};
use super::record::{Change, Record};
use super::{Lost, error, is_lost};

/// A state that an endpoint had.
pub(super) struct State {
    endpoint: EndpointHealth,
    tx: u64,
    /// Nobody saw it before.
    from: Timestamp,
    /// Nobody saw it after. `None` if nothing tells.
    until: Option<Timestamp>,
}

/// The states of each endpoint, in their order.
pub(super) type States = BTreeMap<i64, Vec<State>>;

/// How long before an attempt its endpoint was read, at most: its sender may have been paused meanwhile.
const READ_BEFORE: Duration = Duration::from_secs(15);

/// How long the result of an attempt waits to be stored, at most: no server may lead meanwhile.
const STORED_AFTER: Duration = Duration::from_secs(60);

/// Returns the states that a record tells of.
pub(super) fn states(record: &Record) -> States {
    let mut states = States::new();
    for (position, noted) in record.rows.iter().enumerate() {
        let Change::Endpoint { number, after, .. } = &noted.change else { continue };
        let states = states.entry(*number).or_default();
        if let Some(last) = states.last_mut() {
            last.until = record.seen_by(position);
        }
        let (tx, from) = (noted.tx, noted.at);
        states.extend(after.map(|endpoint| State { endpoint, tx, from, until: None }));
    }
    states
}

/// Returns the endpoint in each life in which an attempt may have begun, by its sender's clock and, if its result was
/// stored at once, by the database's.
pub(super) fn lives(
    states: &States,
    number: i64,
    [sent, began]: [Timestamp; 2],
    lost: &[Lost],
) -> Vec<EndpointHealth> {
    let latest = began.saturating_add(error(lost, began));
    // A sender's clock may be wrong.
    let earliest = sent.clamp(began.saturating_sub(STORED_AFTER), began);
    let least = earliest.saturating_sub(READ_BEFORE);
    let read = |state: &&State| {
        state.from <= latest
            && state.until.is_none_or(|until| least <= until)
            && state.endpoint.is_active()
    };
    let states = states.get(&number).map_or([].as_slice(), Vec::as_slice);
    let mut lives: Vec<EndpointHealth> =
        states.iter().filter(read).map(|state| state.endpoint).collect();
    lives.dedup_by_key(|life| (life.generation(), life.since()));
    lives
}

/// Returns each endpoint that has become what it should not, or was not told.
pub(super) fn check(
    record: &Record,
    states: &States,
    outcomes: Outcomes<'_>,
    lost: &[Lost],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut reports: BTreeMap<(u64, i64), Vec<Told>> = BTreeMap::new();
    for each in outcomes.told {
        reports.entry((each.tx, each.endpoint)).or_default().push(each);
    }
    for told in reports.values_mut() {
        told.sort_by_key(|told| told.position);
    }
    for noted in &record.rows {
        let Change::Endpoint { number, before, after } = &noted.change else { continue };
        let told = reports.remove(&(noted.tx, *number)).unwrap_or_default();
        if !follows(*before, *after, &told, noted.at) {
            wrong.push(format!(
                "endpoint {number}: its state is not what it was told: {before:?} became {after:?}"
            ));
        }
    }
    for ((_, number), mut told) in reports {
        told.retain(|told| !told.reports.is_empty() || !is_lost(lost, told.at));
        let states = states.get(&number).map_or([].as_slice(), Vec::as_slice);
        if !may_be_untold(states, &told, lost) {
            wrong.push(format!(
                "endpoint {number}: it was not told of a result: {:?}",
                told.iter().map(|told| &told.reports).collect::<Vec<_>>()
            ));
        }
    }
    for assumed in outcomes.assumed {
        let states = states.get(&assumed.endpoint).map_or([].as_slice(), Vec::as_slice);
        if !is_right(states, &assumed, lost) {
            let (delivery, row) = (assumed.delivery, DeliveryColumns::from(assumed.row));
            wrong.push(format!(
                "delivery {delivery}: its endpoint was not as this takes it: {row:?}"
            ));
        }
    }
    wrong
}

fn is_right(states: &[State], assumed: &Assumed<'_>, lost: &[Lost]) -> bool {
    let row = DeliveryColumns::from(assumed.row);
    let noted = assumed.noted;
    let error = error(lost, noted.at);
    let (read, latest) = (row.at.saturating_sub(error), noted.at.saturating_add(error));
    states.iter().filter(|state| state.from <= latest || state.tx == noted.tx).any(|state| {
        let is_active = state.endpoint.is_active();
        let columns = EndpointColumns::from(state.endpoint);
        let is_of_row = columns.generation == row.generation;
        match assumed.what {
            Assumption::Accepted => {
                let is_read = state.until.is_none_or(|until| read <= until);
                is_read && is_of_row && is_active == (row.status == DeliveryStatus::Waiting)
            }
            Assumption::Redelivered => is_of_row && is_active,
            Assumption::Parked => !is_of_row || !is_active,
        }
    })
}

fn follows(
    before: Option<EndpointHealth>,
    after: Option<EndpointHealth>,
    told: &[Told],
    at: Timestamp,
) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return before.is_none() };
    if told.is_empty() {
        // Its owner did something, or is reminded.
        let (mut enabled, mut paused, mut moved, mut reminded) = (before, before, before, before);
        let _ = reminded.remind(at);
        enabled.enable(after.since());
        paused.pause(after.since());
        moved.moved(after.since());
        // One that is disabled has another address, and is the same.
        return [enabled, paused, moved, reminded].contains(&after);
    }
    let mut states = HashSet::from([before]);
    for told in told {
        // The time of a late 410 is that of its effect.
        let is_gone = after.disabled() == Some(DisabledReason::Gone);
        let at = [Some(told.at), is_gone.then(|| after.since())];
        states = states
            .iter()
            .flat_map(|state| told.reports.iter().map(move |report| (*state, *report)))
            .flat_map(|each| at.into_iter().flatten().map(move |at| (each, at)))
            .map(|((mut state, report), at)| {
                let _ = state.record(report, at).unwrap();
                state
            })
            .collect();
    }
    states.contains(&after)
}

/// Returns whether the reports mean nothing to a state that could be read when the attempts had ended and
/// their results were not yet stored.
fn may_be_untold(states: &[State], told: &[Told], lost: &[Lost]) -> bool {
    let is_empty = |told: &Told| told.reports.iter().any(|report| report.is_empty());
    if told.iter().all(is_empty) {
        return true;
    }
    let error = |at| error(lost, at);
    let ended = told.iter().map(|told| told.at.saturating_sub(error(told.at))).max();
    let noted = told.iter().map(|told| told.noted.saturating_add(error(told.noted))).max();
    let read = |state: &&State| {
        Some(state.from) <= noted && state.until.is_none_or(|until| ended <= Some(until))
    };
    states.iter().filter(read).any(|state| {
        told.iter().all(|told| {
            told.reports.iter().any(|report| {
                let mut copy = state.endpoint;
                let _ = copy.record(*report, told.at).unwrap();
                copy == state.endpoint
            })
        })
    })
}
