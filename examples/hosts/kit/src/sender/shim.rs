//! What waits: in the library's planner, for an operator's limit, or for another redelivery of its endpoint.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{self as library, Outcome, SenderLimits};

use super::LIMITS;
use super::rows::Key;

/// What the next attempt of a delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueKind {
    First,
    Retry,
    Redelivery,
}

/// What came of adding a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    New,
    Known,
    /// Its number is another delivery's.
    Other,
}

/// What a limit holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitOf {
    All,
    Account(u32),
    Endpoint(u32),
}

/// A delivery to plan.
#[derive(Clone, Copy, Debug)]
pub struct DueDelivery {
    pub delivery: u64,
    pub endpoint: u32,
    pub account: u32,
    pub shard: u16,
    pub event_created_at: Timestamp,
    pub due: Timestamp,
    pub kind: DueKind,
}

/// A delivery whose turn has come.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    pub delivery: u64,
    pub endpoint: u32,
    pub shard: u16,
    pub event_created_at: Timestamp,
    pub kind: DueKind,
}

impl Planned {
    /// Returns its place.
    pub fn key(&self) -> Key {
        let Self { delivery, endpoint, event_created_at, .. } = *self;
        Key { delivery, endpoint, event_created_at }
    }
}

/// The most redeliveries of one endpoint that are planned: three quarters of what may be in flight to it. A recovery
/// makes many due, and none of them is to be in front of a new event.
const SHARE: usize = {
    #[allow(clippy::as_conversions)]
    let limit = LIMITS.per_endpoint as usize;
    limit.saturating_mul(3).div_ceil(4)
};

/// How much of what was allowed, and not used, may be used later: a tenth of a second.
const BURST: Duration = Duration::from_millis(100);

/// What waits.
#[derive(Debug)]
pub struct Planner {
    inner: library::Planner,
    known: BTreeMap<u64, Known>,
    in_hand: BTreeMap<u16, usize>,
    valves: BTreeMap<LimitOf, Valve>,
    shares: BTreeMap<u32, Share>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    due: DueDelivery,
    waits: bool,
    /// Whether it has waited for a limit, and may begin now.
    is_admitted: bool,
}

#[derive(Debug)]
struct Valve {
    per_second: u32,
    /// When the next attempt may begin.
    next: Timestamp,
    waiting: VecDeque<u64>,
}

#[derive(Debug, Default)]
struct Share {
    begun: BTreeSet<u64>,
    waiting: VecDeque<u64>,
}

impl Valve {
    /// Allows an attempt now, if it is time for one.
    fn allows(&mut self, now: Timestamp) -> bool {
        let Some(interval) = Duration::from_secs(1).checked_div(self.per_second) else {
            return false;
        };
        let allows = self.next <= now;
        if allows {
            self.next = self.next.max(now.saturating_sub(BURST)).saturating_add(interval);
        }
        allows
    }
}

impl Planner {
    pub fn new(limits: SenderLimits) -> Self {
        Self {
            inner: library::Planner::new(limits),
            known: BTreeMap::new(),
            in_hand: BTreeMap::new(),
            valves: BTreeMap::new(),
            shares: BTreeMap::new(),
        }
    }

    #[must_use]
    pub fn with_rate(self, per_second: u32) -> Self {
        Self { inner: self.inner.with_rate(per_second), ..self }
    }

    fn plan(&mut self, due: DueDelivery) {
        if due.kind == DueKind::Redelivery {
            let share = self.shares.entry(due.endpoint).or_default();
            if share.begun.len() >= SHARE && !share.begun.contains(&due.delivery) {
                return share.waiting.push_back(due.delivery);
            }
            share.begun.insert(due.delivery);
        }
        let DueDelivery { delivery, endpoint, account, due: at, kind, .. } = due;
        let is_retry = kind == DueKind::Retry;
        self.inner.add(library::DueDelivery { delivery, endpoint, account, due: at, is_retry });
    }

    /// Adds a delivery, once however often it is found; the earlier due time counts.
    pub fn add(&mut self, due: DueDelivery) -> Added {
        match self.known.get(&due.delivery) {
            Some(known) if !is_of(known, &due) => return Added::Other,
            Some(known) if !known.waits || known.due.due <= due.due => return Added::Known,
            _ => {}
        }
        self.known.insert(due.delivery, Known { due, waits: true, is_admitted: false });
        self.plan(due);
        Added::New
    }

    /// Takes the delivery whose turn it is.
    pub fn next(&mut self, now: Timestamp) -> Option<Planned> {
        self.open(now);
        loop {
            let (delivery, endpoint) = self.inner.next(now)?;
            let known = self.known.get(&delivery).copied();
            let known = known.filter(|known| known.waits && known.due.endpoint == endpoint);
            let Some(Known { due, is_admitted, .. }) = known else {
                self.inner.finished(endpoint, Outcome::Unsent, Duration::ZERO);
                self.end_share(endpoint, delivery);
                continue;
            };
            if !is_admitted && !self.admits(&due, now) {
                self.inner.finished(endpoint, Outcome::Unsent, Duration::ZERO);
                continue;
            }
            if let Some(known) = self.known.get_mut(&delivery) {
                known.waits = false;
            }
            let in_hand = self.in_hand.entry(due.shard).or_default();
            *in_hand = in_hand.saturating_add(1);
            let DueDelivery { shard, event_created_at, kind, .. } = due;
            return Some(Planned { delivery, endpoint, shard, event_created_at, kind });
        }
    }

    fn admits(&mut self, due: &DueDelivery, now: Timestamp) -> bool {
        let applying =
            [LimitOf::All, LimitOf::Account(due.account), LimitOf::Endpoint(due.endpoint)];
        let rate = |of: &LimitOf| Some((self.valves.get(of)?.per_second, *of));
        let slowest = applying.iter().filter_map(rate).min_by_key(|(per_second, _)| *per_second);
        let Some(valve) = slowest.and_then(|(_, of)| self.valves.get_mut(&of)) else { return true };
        let admits = valve.waiting.is_empty() && valve.allows(now);
        if !admits {
            valve.waiting.push_back(due.delivery);
        }
        admits
    }

    fn open(&mut self, now: Timestamp) {
        let mut opened = Vec::new();
        for valve in self.valves.values_mut() {
            while !valve.waiting.is_empty() && valve.allows(now) {
                opened.extend(valve.waiting.pop_front());
            }
        }
        self.again(opened, true);
    }

    fn again(&mut self, waited: Vec<u64>, is_admitted: bool) {
        for delivery in waited {
            if let Some(known) = self.known.get_mut(&delivery).filter(|known| known.waits) {
                known.is_admitted = is_admitted;
                let due = known.due;
                self.plan(due);
            }
        }
    }

    /// Sets what operators have set.
    pub fn set_limits(&mut self, limits: impl Iterator<Item = (LimitOf, u32)>, now: Timestamp) {
        let limits: BTreeMap<LimitOf, u32> = limits.collect();
        if limits.iter().eq(self.valves.iter().map(|(of, valve)| (of, &valve.per_second))) {
            return;
        }
        let valves = limits.into_iter().map(|(of, per_second)| {
            (of, Valve { per_second, next: now, waiting: VecDeque::new() })
        });
        let before = std::mem::replace(&mut self.valves, valves.collect());
        self.again(before.into_values().flat_map(|valve| valve.waiting).collect(), false);
    }

    /// Hears that nothing of an attempt of this endpoint is left.
    pub fn finished(&mut self, endpoint: u32, outcome: Outcome, took: Duration) {
        self.inner.finished(endpoint, outcome, took);
    }

    /// Hears that a delivery is not in hand any more.
    pub fn release(&mut self, delivery: u64, again: Option<(Timestamp, DueKind)>, _: Timestamp) {
        let Some(known) = self.known.get_mut(&delivery).filter(|known| !known.waits) else {
            return;
        };
        (known.waits, known.is_admitted) = (true, false);
        let shard = known.due.shard;
        let endpoint = known.due.endpoint;
        if let Some(count) = self.in_hand.get_mut(&shard) {
            *count = count.saturating_sub(1);
        }
        if let Some((due, kind)) = again {
            (known.due.due, known.due.kind) = (due, kind);
            let due = known.due;
            if kind != DueKind::Redelivery {
                self.end_share(endpoint, delivery);
            }
            self.plan(due);
        } else {
            self.known.remove(&delivery);
            self.end_share(endpoint, delivery);
        }
    }

    fn end_share(&mut self, endpoint: u32, delivery: u64) {
        let Some(share) = self.shares.get_mut(&endpoint) else { return };
        if !share.begun.remove(&delivery) {
            return;
        }
        let known = &self.known;
        let next = std::iter::from_fn(|| share.waiting.pop_front())
            .find_map(|id| Some(known.get(&id).filter(|known| known.waits)?.due));
        if share.begun.is_empty() && share.waiting.is_empty() && next.is_none() {
            self.shares.remove(&endpoint);
        }
        if let Some(due) = next {
            self.plan(due);
        }
    }

    /// Forgets what waits of an endpoint.
    pub fn forget(&mut self, endpoint: u32) {
        self.retain(|due| due.endpoint != endpoint);
    }

    /// Forgets what waits of a shard.
    pub fn forget_shard(&mut self, shard: u16) {
        self.retain(|due| due.shard != shard);
    }

    /// Forgets all that waits.
    pub fn clear(&mut self) {
        self.retain(|_| false);
    }

    fn retain(&mut self, keep: impl Fn(&DueDelivery) -> bool) {
        self.known.retain(|_, known| !known.waits || keep(&known.due));
        let known = &self.known;
        self.inner.retain(|delivery, _| known.contains_key(&delivery));
        for valve in self.valves.values_mut() {
            valve.waiting.retain(|delivery| known.contains_key(delivery));
        }
        self.shares.retain(|_, share| {
            share.begun.retain(|delivery| known.contains_key(delivery));
            share.waiting.retain(|delivery| known.contains_key(delivery));
            !share.begun.is_empty()
        });
    }

    /// Returns how many deliveries are in hand, of a shard or of all.
    pub fn in_hand(&self, shard: Option<u16>) -> usize {
        match shard {
            Some(shard) => self.in_hand.get(&shard).copied().unwrap_or(0),
            None => self.in_hand.values().sum(),
        }
    }

    /// Returns when to ask for the next again.
    pub fn next_due(&self) -> Option<Timestamp> {
        let waits = self.valves.values().filter(|it| it.per_second > 0 && !it.waiting.is_empty());
        self.inner.next_due().into_iter().chain(waits.map(|valve| valve.next)).min()
    }

    pub fn pending(&self) -> usize {
        self.inner.pending().saturating_add(self.kept())
    }

    pub fn limited(&self) -> usize {
        self.inner.limited().saturating_add(self.kept())
    }

    fn kept(&self) -> usize {
        self.valves.values().map(|valve| valve.waiting.len()).sum()
    }

    pub fn in_flight(&self) -> u32 {
        self.inner.in_flight()
    }

    pub fn is_behind(&self, now: Timestamp) -> bool {
        self.inner.is_behind(now)
    }
}

fn is_of(known: &Known, due: &DueDelivery) -> bool {
    let of = |due: &DueDelivery| (due.endpoint, due.event_created_at);
    of(&known.due) == of(due)
}
