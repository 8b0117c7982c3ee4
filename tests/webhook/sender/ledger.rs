//! A ledger that is kept by the specification alone, of what happened and of nothing that the values
//! say, and what holds of every world beside it.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Alert, DeliveryStatus, DisabledReason, FAILURES_TO_WARN, MAX_ATTEMPTS, Outcome,
};
use stateright::Property;

use super::world::{Past, Rules, World};
use super::{answered, disabled, failing};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ledger {
    pub(super) streak: u8,
    /// First attempts that failed since the last 2xx, up to four, and when the first of them did.
    firsts: u8,
    first_at: Option<Timestamp>,
    suspect: bool,
    pub(super) disabled: Option<DisabledReason>,
    pub(super) life: u8,
    pub(super) was_disabled: bool,
    pub(super) each: Vec<Account>,
    /// Something that must never happen did.
    pub(super) broken: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Account {
    pub(super) charged: u8,
    pub(super) counted: u8,
    pub(super) received: u8,
    pub(super) acknowledged: bool,
    /// As it was stored.
    delivered: bool,
}

/// An attempt whose end is stored, as far as the specification asks.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) of: usize,
    pub(super) number: u8,
    /// How often the endpoint had been enabled when it began.
    pub(super) life: u8,
    pub(super) outcome: Outcome,
    pub(super) late: bool,
    /// Of the delivery, before anybody parks it.
    pub(super) status: DeliveryStatus,
}

impl Ledger {
    /// The ledger of what happened before the world begins.
    pub(super) fn new(past: &Past, first_at: Timestamp) -> Self {
        let charged = |failed: &u8| Account { charged: *failed, ..Account::default() };
        Self {
            streak: past.streak,
            firsts: past.firsts,
            first_at: (past.firsts > 0).then_some(first_at),
            suspect: false,
            disabled: None,
            life: 0,
            was_disabled: false,
            each: past.failed.iter().map(charged).collect(),
            broken: None,
        }
    }

    /// Notes that the endpoint was enabled.
    pub(super) fn enabled(&mut self) {
        (self.streak, self.disabled) = (0, None);
        self.life += 1;
    }

    pub(super) fn sends(&mut self, of: usize) {
        let account = &mut self.each[of];
        account.received = (account.received + 1).min(2);
    }

    /// Whether an outcome at this moment would change nothing, if it counts at all.
    pub(super) fn is_unmoved(&self, outcome: Outcome, now: Timestamp) -> bool {
        match outcome.is_success() {
            true => self.streak == 0 && self.firsts == 0,
            false => self.suspect || self.firsts == 4 && !self.is_minute(now),
        }
    }

    /// D-80: an instant that is more than two minutes ahead counts as reached.
    fn is_minute(&self, now: Timestamp) -> bool {
        let minute = Duration::from_secs(60);
        self.first_at.is_some_and(|first| {
            let end = first.saturating_add(minute);
            end <= now || end.since(now) > 2 * minute
        })
    }

    /// Writes down what a stored step means by the specification, and returns what the owner is to be
    /// told. `unmoved`: the endpoint was not written, for there was an instant at which the outcome
    /// changed nothing.
    pub(super) fn note(&mut self, step: Step, unmoved: bool, now: Timestamp) -> Option<Alert> {
        let counts = !step.late && step.outcome != Outcome::Unsent;
        let failed = counts && step.outcome == Outcome::Reset;
        self.each[step.of].charged += u8::from(failed);
        self.each[step.of].delivered |= step.status == DeliveryStatus::Delivered;
        if self.disabled.is_some() || self.life != step.life || unmoved {
            return None;
        }
        if step.outcome == answered(410) {
            return self.disable(DisabledReason::Gone);
        }
        if counts && step.status == DeliveryStatus::Delivered {
            let warned = self.suspect || self.streak >= FAILURES_TO_WARN[0];
            self.streak = 0;
            self.forget();
            return warned.then_some(Alert::Recovered);
        }
        if failed && step.status == DeliveryStatus::Failed {
            self.streak += 1;
            return match self.streak {
                20 => self.disable(DisabledReason::Failing),
                failures => FAILURES_TO_WARN.contains(&failures).then(|| failing(failures)),
            };
        }
        if failed && step.number == 1 && !self.suspect {
            self.first_at.get_or_insert(now);
            self.suspect = self.firsts == 4 && self.is_minute(now);
            self.firsts = 4.min(self.firsts + 1);
            return self.suspect.then_some(Alert::Suspect);
        }
        None
    }

    fn disable(&mut self, reason: DisabledReason) -> Option<Alert> {
        (self.disabled, self.was_disabled) = (Some(reason), true);
        self.forget();
        Some(disabled(reason))
    }

    fn forget(&mut self) {
        (self.firsts, self.first_at, self.suspect) = (0, None, false);
    }
}

/// What holds of every world, and what some world shows.
pub(super) fn properties(past: &Past) -> Vec<Property<Rules>> {
    let mut all = vec![
        Property::always("nothing forbidden happened", |_, world: &World| {
            world.ledger.broken.is_none()
        }),
        Property::always("no accepted event is lost", |_, world: &World| world.loses_nothing()),
        Property::always("what is delivered stays so", |_, world: &World| {
            let mut each = world.rows.iter().zip(&world.ledger.each);
            each.all(|(row, account)| {
                !account.delivered || row.status() == DeliveryStatus::Delivered
            })
        }),
        Property::always("the attempts of the schedule at most are charged", |_, world: &World| {
            let mut each = world.rows.iter().zip(&world.ledger.each);
            each.all(|(row, account)| account.charged.max(row.attempts()) <= MAX_ATTEMPTS)
        }),
        Property::always("each delivery is counted once at most", |_, world: &World| {
            world.ledger.each.iter().all(|account| account.counted <= 1)
        }),
        Property::sometimes("delivered twice to the receiver", |_, world: &World| {
            world.ledger.each.iter().any(|account| account.received > 1)
        }),
        Property::sometimes("disabled by a 410", |_, world: &World| {
            world.endpoint.disabled() == Some(DisabledReason::Gone)
        }),
        Property::always("disabled exactly when it should be", |_, world: &World| {
            let World { endpoint, ledger, .. } = world;
            endpoint.disabled() == ledger.disabled
                && (ledger.disabled.is_some() || endpoint.failures() == ledger.streak)
        }),
        Property::always("suspect exactly when it should be", |_, world: &World| {
            world.endpoint.is_suspect() == world.ledger.suspect
        }),
        Property::sometimes("refused by a version", |_, world: &World| world.refused),
        Property::sometimes("unwritten, and changed since it was read", |_, world: &World| {
            world.unwritten
        }),
    ];
    if past.firsts > 0 {
        all.push(Property::sometimes("suspect", |_, world: &World| world.ledger.suspect));
    }
    all
}
