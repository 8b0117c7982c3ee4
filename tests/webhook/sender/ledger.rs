//! What the two model checkers share: the store and its clocks, what happens to them from outside,
//! and a ledger that is kept by the specification alone, of what happened and of nothing that the
//! values say.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Alert, BeginError, Delivery, DisabledReason, Endpoint, Outcome, RETRY_WAITS, Status,
};
use stateright::{Checker, Model, Property};

use super::{answered, failed_before, record, start};

/// How often what may happen does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) crashes: u8,
    pub(super) ticks: u8,
    pub(super) days: u8,
    pub(super) enables: u8,
    pub(super) redeliveries: u8,
    pub(super) repeats: u8,
    pub(super) unsent: u8,
    pub(super) jumps: u8,
}

pub(super) const BUDGET: Budget = Budget {
    crashes: 1,
    ticks: 1,
    days: 0,
    enables: 0,
    redeliveries: 0,
    repeats: 0,
    unsent: 0,
    jumps: 0,
};

/// What happened before the world begins.
#[derive(Clone, Debug)]
pub(super) struct Past {
    /// One delivery for each: how often it has failed before.
    pub(super) failed: Vec<u8>,
    /// How many deliveries in a row have failed before.
    pub(super) streak: u8,
    /// How many first attempts in a row have failed before, the first of them a minute ago.
    pub(super) firsts: u8,
}

/// The store, the clocks of two processes, and the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Store {
    pub(super) now: Timestamp,
    pub(super) rows: Vec<Delivery>,
    pub(super) endpoint: Endpoint,
    /// Whose clock is a year ahead.
    pub(super) ahead: [bool; 2],
    pub(super) left: Budget,
    pub(super) ledger: Ledger,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ledger {
    pub(super) streak: u8,
    /// First attempts that failed since the last 2xx, up to four, and when the first of them did.
    firsts: u8,
    first_at: Option<Timestamp>,
    suspect: bool,
    pub(super) disabled: Option<DisabledReason>,
    disabled_at: Timestamp,
    /// The last reminder, in days.
    reminded: u8,
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

/// What no process does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outside {
    SetClock(usize),
    Tick,
    Day,
    Enable,
    Redeliver(usize),
}

/// An attempt whose end is stored, as far as the specification asks.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) of: usize,
    pub(super) number: u8,
    pub(super) manual: bool,
    /// How often the endpoint had been enabled when it began.
    pub(super) life: u8,
    pub(super) outcome: Outcome,
    pub(super) late: bool,
    /// Of the delivery, before anybody parks it.
    pub(super) status: Status,
}

impl Store {
    pub(super) fn new(past: &Past, budget: Budget) -> Self {
        let mut endpoint = Endpoint::new(start());
        let mut fail = |before, now| _ = record(&mut endpoint, before, answered(500), now);
        let minute_ago = start().saturating_sub(Duration::from_secs(60));
        (0..past.streak).for_each(|_| fail(5, start()));
        (0..past.firsts).for_each(|_| fail(0, minute_ago));
        let rows = past.failed.iter().map(|failed| failed_before(*failed, &endpoint, start()));
        let charged = |failed: &u8| Account { charged: *failed, ..Account::default() };
        Self {
            now: start(),
            rows: rows.collect(),
            endpoint,
            ahead: [false; 2],
            left: budget,
            ledger: Ledger {
                streak: past.streak,
                firsts: past.firsts,
                first_at: (past.firsts > 0).then_some(minute_ago),
                suspect: false,
                disabled: None,
                disabled_at: start(),
                reminded: 0,
                life: 0,
                was_disabled: false,
                each: past.failed.iter().map(charged).collect(),
                broken: None,
            },
        }
    }

    pub(super) fn clock(&self, process: usize) -> Timestamp {
        let ahead = Duration::from_secs(365 * 86_400);
        if self.ahead[process] { self.now.saturating_add(ahead) } else { self.now }
    }

    pub(super) fn is_due(&self, of: usize, now: Timestamp) -> bool {
        self.rows[of].due(now).is_some_and(|due| due <= now)
    }

    pub(super) fn outside(&self) -> Vec<Outside> {
        let mut all = Vec::new();
        for at in 0..2 {
            if self.left.jumps > 0 || self.ahead[at] {
                all.push(Outside::SetClock(at));
            }
        }
        let later = |of| !self.is_due(of, self.now) && self.rows[of].is_pending();
        if self.left.ticks > 0 && (0..self.rows.len()).any(later) {
            all.push(Outside::Tick);
        }
        if self.left.days > 0 && !self.endpoint.is_active() {
            all.push(Outside::Day);
        }
        if self.left.enables > 0 && !self.endpoint.is_active() {
            all.push(Outside::Enable);
        }
        for (of, row) in self.rows.iter().enumerate() {
            let mut row = *row;
            if self.left.redeliveries > 0 && row.redeliver(&self.endpoint, self.now).is_ok() {
                all.push(Outside::Redeliver(of));
            }
        }
        all
    }

    pub(super) fn happens(&mut self, what: Outside) -> Option<()> {
        match what {
            Outside::SetClock(at) => {
                self.left.jumps -= u8::from(!self.ahead[at]);
                self.ahead[at] = !self.ahead[at];
            }
            Outside::Tick => {
                self.left.ticks -= 1;
                let due = self.rows.iter().filter_map(|row| row.due(self.now));
                self.now = due.filter(|due| *due > self.now).min()?;
            }
            Outside::Day => {
                self.left.days -= 1;
                self.now = self.now.saturating_add(Duration::from_secs(86_400));
            }
            Outside::Enable => {
                self.left.enables -= 1;
                let _ = self.endpoint.enable(self.now)?;
                let ledger = &mut self.ledger;
                (ledger.streak, ledger.disabled, ledger.reminded) = (0, None, 0);
                ledger.life += 1;
            }
            Outside::Redeliver(of) => {
                self.left.redeliveries -= 1;
                let endpoint = self.endpoint;
                self.rows[of].redeliver(&endpoint, self.now).unwrap();
            }
        }
        Some(())
    }

    /// Two processes whose clocks are a year apart could take a lease from one another for ever.
    pub(super) fn is_within(&self, budget: Budget) -> bool {
        let steps = |row: &Delivery| row.version() - 2 * u32::from(row.attempts());
        budget.jumps == 0 || self.rows.iter().all(|row| steps(row) <= 5)
    }

    /// D-80: whoever comes when a delivery is due can begin it, or finds the endpoint disabled, and it
    /// is due no later than after the longest wait.
    fn loses_nothing(&self) -> bool {
        self.rows.iter().zip(&self.ledger.each).all(|(row, account)| match row.status() {
            Status::Waiting | Status::Sending => {
                let mut row = *row;
                let due = row.due(self.now).unwrap();
                let begun = row.begin(&self.endpoint, due);
                due.since(self.now) <= RETRY_WAITS[4]
                    && (begun.is_ok()
                        || begun == Err(BeginError::Parked) && self.ledger.was_disabled)
            }
            Status::Delivered => account.acknowledged,
            Status::Failed => account.charged == 6 || self.ledger.was_disabled,
            _ => self.ledger.was_disabled,
        })
    }

    /// Whoever looks finds the reminder that is due, and no other.
    fn reminds(&self) -> bool {
        let mut endpoint = self.endpoint;
        let due = self.ledger.reminder(self.now);
        endpoint.remind(self.now) == due.map(|(reason, days)| Alert::StillDisabled { reason, days })
    }
}

impl Ledger {
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
        let failed = counts && !step.manual && step.outcome == Outcome::Reset;
        self.each[step.of].charged += u8::from(failed);
        self.each[step.of].delivered |= step.status == Status::Delivered;
        if self.disabled.is_some() || self.life != step.life || unmoved {
            return None;
        }
        if step.outcome == answered(410) {
            return self.disable(DisabledReason::Gone, now);
        }
        if counts && step.status == Status::Delivered {
            let warned = self.suspect || self.streak >= 5;
            self.streak = 0;
            self.forget();
            return warned.then_some(Alert::Recovered);
        }
        if failed && step.status == Status::Failed {
            self.streak += 1;
            return match self.streak {
                20 => self.disable(DisabledReason::Failing, now),
                failures @ (5 | 10 | 15) => Some(Alert::Failing { failures }),
                _ => None,
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

    fn disable(&mut self, reason: DisabledReason, now: Timestamp) -> Option<Alert> {
        (self.disabled, self.disabled_at, self.was_disabled) = (Some(reason), now, true);
        self.forget();
        Some(Alert::Disabled { reason })
    }

    fn forget(&mut self) {
        (self.firsts, self.first_at, self.suspect) = (0, None, false);
    }

    /// The reminder that is due, if it was not given.
    fn reminder(&self, now: Timestamp) -> Option<(DisabledReason, u8)> {
        let days = now.since(self.disabled_at).as_secs() / 86_400;
        let due = [3, 1].into_iter().find(|day| u64::from(*day) <= days)?;
        self.disabled.filter(|_| due > self.reminded).map(|reason| (reason, due))
    }

    /// Writes down a reminder that was made then, and stored now.
    pub(super) fn reminds(&mut self, alert: Alert, then: Timestamp) {
        let due = self.reminder(then);
        if due.map(|(reason, days)| Alert::StillDisabled { reason, days }) != Some(alert) {
            self.broken = Some("reminded without a reason, or twice");
        }
        self.reminded = due.map_or(self.reminded, |(_, days)| days);
    }
}

/// What holds of every world, and what some world shows.
pub(super) fn properties<M, S>() -> Vec<Property<M>>
where
    M: Model<State = S>,
    S: AsRef<Store>,
{
    vec![
        Property::always("nothing forbidden happened", |_, world: &S| {
            world.as_ref().ledger.broken.is_none()
        }),
        Property::always("no accepted event is lost", |_, world: &S| {
            world.as_ref().loses_nothing()
        }),
        Property::always("what is delivered stays so", |_, world: &S| {
            let store = world.as_ref();
            let mut each = store.rows.iter().zip(&store.ledger.each);
            each.all(|(row, account)| !account.delivered || row.status() == Status::Delivered)
        }),
        Property::always("six attempts at most are charged", |_, world: &S| {
            let store = world.as_ref();
            let mut each = store.rows.iter().zip(&store.ledger.each);
            each.all(|(row, account)| account.charged <= 6 && row.attempts() <= 6)
        }),
        Property::always("each delivery is counted once at most", |_, world: &S| {
            world.as_ref().ledger.each.iter().all(|account| account.counted <= 1)
        }),
        Property::sometimes("delivered twice to the receiver", |_, world: &S| {
            world.as_ref().ledger.each.iter().any(|account| account.received > 1)
        }),
        Property::sometimes("disabled by a 410", |_, world: &S| {
            world.as_ref().endpoint.disabled() == Some(DisabledReason::Gone)
        }),
    ]
}

/// What holds where both rows are written at once.
pub(super) fn exact<M, S>(past: &Past) -> Vec<Property<M>>
where
    M: Model<State = S>,
    S: AsRef<Store>,
{
    let mut all = vec![
        Property::always("disabled exactly when it should be", |_, world: &S| {
            let Store { endpoint, ledger, .. } = world.as_ref();
            endpoint.disabled() == ledger.disabled
                && (ledger.disabled.is_some() || endpoint.failures() == ledger.streak)
        }),
        Property::always("suspect exactly when it should be", |_, world: &S| {
            world.as_ref().endpoint.is_suspect() == world.as_ref().ledger.suspect
        }),
        Property::always("a reminder is due exactly when it should be", |_, world: &S| {
            // A clock that was ahead may have disabled it.
            let store = world.as_ref();
            store.ledger.disabled_at > store.now || store.reminds()
        }),
    ];
    if past.firsts > 0 {
        all.push(Property::sometimes("suspect", |_, world: &S| world.as_ref().ledger.suspect));
    }
    all
}

#[track_caller]
pub(super) fn check<M>(model: M, at_least: usize)
where
    M: Model + Send + Sync + 'static,
    M::State: std::fmt::Debug + std::hash::Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: Clone + std::fmt::Debug + PartialEq,
{
    let checker = model.checker().threads(2).spawn_bfs().join();
    let states = checker.unique_state_count();
    println!("{states} states");
    checker.assert_properties();
    assert!(states >= at_least, "only {states} states");
}
