//! The sender as a machine: what happened goes in, what to do comes out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Added, BeginError, Delivery, DueDelivery, DueKind, LimitOf, Outcome, Planner, Rate, Settled,
};

use super::{Begun, Command, Ended, Event, How, LIMITS, Moment, Owned};
use crate::log;
use crate::post::Sent;
use crate::rows::{Done, Failure, Key, Names, News, SetLimit, ToBegin};

/// The most deliveries that are read at once, and the most reads at a time.
const READ: usize = 128;
const READS: u32 = 4;

/// The most deliveries in hand. With more, results wait for the store, and no attempt begins.
const IN_HAND: usize = 4096;

/// How long to wait after the store did not respond to a read.
const AFTER_READ: Duration = Duration::from_millis(200);

/// The most attempts in a batch, how long the first waits for others, and the most batches at a time: while one
/// waits for the disk, another runs.
const BATCH: usize = 128;
const GATHER: Duration = Duration::from_millis(5);
const STORES: usize = 3;

/// How long to wait before a batch is stored again, at least and at most.
const AGAIN: Duration = Duration::from_millis(50);
const AGAIN_AT_MOST: Duration = Duration::from_secs(1);

/// How long to wait before an endpoint is parked again.
const AFTER_PARK: Duration = Duration::from_secs(1);

/// The sender's decisions.
#[derive(Debug)]
pub struct Core {
    planner: Planner,
    owned: Owned,
    reads: Reads,
    /// Attempts that have ended, and are not being stored.
    ended: VecDeque<Ended>,
    stores: Stores,
    /// The endpoints that are parked, each once at a time.
    parking: BTreeMap<u32, Walk>,
    /// Attempts in flight.
    posts: usize,
    /// The limits that operators have set.
    limits: BTreeSet<LimitOf>,
    is_stopping: bool,
}

#[derive(Debug, Default)]
struct Reads {
    under_way: u32,
    /// Until when nothing is read.
    rest: Duration,
}

/// The batches that are being stored, and those that wait.
#[derive(Debug, Default)]
struct Stores {
    /// Since when the first attempt that has ended waits for others.
    gathering: Option<Duration>,
    under_way: usize,
    waiting: Vec<(Duration, Vec<Ended>)>,
    /// How long to wait after the next failure.
    wait: Duration,
}

/// A walk through what is pending of an endpoint.
#[derive(Clone, Copy, Debug)]
struct Walk {
    /// When to begin; `None` while it is under way.
    at: Option<Duration>,
    /// Whether somebody has asked since it began: what that one has seen may be behind it.
    is_asked_again: bool,
}

impl Core {
    /// Creates a sender that owns nothing, with so many attempts a second and endpoint at most; 0 is no limit.
    pub fn new(per_second: u32) -> Self {
        Self {
            planner: Planner::new(LIMITS).with_rate(per_second),
            owned: Owned::default(),
            reads: Reads::default(),
            ended: VecDeque::new(),
            stores: Stores { wait: AGAIN, ..Stores::default() },
            parking: BTreeMap::new(),
            posts: 0,
            limits: BTreeSet::new(),
            is_stopping: false,
        }
    }

    /// Begins nothing from now on. Attempts under way go on to their ends.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Returns what waits, for monitoring and for whoever moves a clock.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// Tells whether nothing is in hand.
    pub fn is_idle(&self) -> bool {
        self.planner.in_hand(None) == 0
    }

    /// Returns the next thing to do. `None`: nothing is to be done until the time that [`wait`](Self::wait) says, or until
    /// something is heard.
    pub fn next(&mut self, at: Moment) -> Option<Command> {
        if let Some((batch, how)) = self.next_batch(at) {
            return Some(Command::Store(batch, how));
        }
        let park = |(endpoint, walk): (&u32, &mut Walk)| {
            (walk.at? <= at.steady).then(|| {
                *walk = Walk { at: None, is_asked_again: false };
                Command::Park(*endpoint)
            })
        };
        if let Some(command) = self.parking.iter_mut().find_map(park) {
            return Some(command);
        }
        if !self.may_read(at) || self.reads.rest > at.steady {
            return None;
        }
        let planned: Vec<DueDelivery> =
            std::iter::from_fn(|| self.planner.next(at.now)).take(READ).collect();
        if planned.is_empty() {
            return None;
        }
        self.reads.under_way = self.reads.under_way.saturating_add(1);
        Some(Command::Read(planned))
    }

    /// Returns how long nothing is to be done, if nothing is heard meanwhile.
    pub fn wait(&self, at: Moment) -> Option<Duration> {
        let due = self.planner.next_due().filter(|_| self.may_read(at));
        let gathered = self.stores.gathering.filter(|_| self.stores.under_way < STORES);
        let again = self.stores.waiting.iter().map(|(again, _)| *again).min();
        let instants = [
            due.map(|due| at.steady.saturating_add(due.since(at.now)).max(self.reads.rest)),
            gathered.map(|since| since.saturating_add(GATHER)),
            again.filter(|_| self.stores.under_way < STORES),
            self.parking.values().filter_map(|walk| walk.at).min(),
        ];
        instants.into_iter().flatten().min().map(|instant| instant.saturating_sub(at.steady))
    }

    fn may_read(&self, at: Moment) -> bool {
        !self.is_stopping
            && self.owned.is_valid(at)
            && self.reads.under_way < READS
            && self.planner.in_hand(None) < IN_HAND
    }

    /// Takes a batch that is to be stored now.
    fn next_batch(&mut self, at: Moment) -> Option<(Vec<Ended>, How)> {
        if self.stores.under_way >= STORES {
            return None;
        }
        let again = self.stores.waiting.iter().position(|(again, _)| *again <= at.steady);
        let taken = match again {
            Some(place) => (self.stores.waiting.swap_remove(place).1, How::Sure),
            None => {
                let since = self.stores.gathering?;
                let is_time = since.saturating_add(GATHER) <= at.steady;
                if self.ended.len() < BATCH && !is_time {
                    return None;
                }
                let batch = self.ended.drain(..self.ended.len().min(BATCH)).collect();
                self.stores.gathering = (!self.ended.is_empty()).then_some(at.steady);
                (batch, How::Quick)
            }
        };
        self.stores.under_way = self.stores.under_way.saturating_add(1);
        Some(taken)
    }

    /// Hears what happened, and adds what is to be done.
    pub fn hear(&mut self, event: Event, at: Moment, out: &mut VecDeque<Command>) {
        match event {
            Event::Owned(owned) => {
                let gone = self.owned.shards.iter();
                let gone = gone.filter(|(shard, epoch)| owned.shards.get(shard) != Some(epoch));
                gone.for_each(|(shard, _)| self.planner.forget_shard(*shard));
                self.owned = owned;
            }
            Event::News(news) => self.find(news, at, out),
            Event::Limits(limits) => {
                let before = std::mem::take(&mut self.limits);
                for SetLimit { of, per_second } in limits {
                    let rate = NonZeroU32::new(per_second).map_or(Rate::Paused, Rate::PerSecond);
                    self.planner.limit(of, rate);
                    self.limits.insert(of);
                }
                for of in before.difference(&self.limits) {
                    self.planner.limit(*of, Rate::Unlimited);
                }
            }
            Event::Read(planned, read) => {
                self.reads.under_way = self.reads.under_way.saturating_sub(1);
                match read {
                    Ok(read) => {
                        for (planned, read) in planned.into_iter().zip(read) {
                            self.begin(planned, read, at, out);
                        }
                    }
                    Err(_) => {
                        self.reads.rest = at.steady.saturating_add(AFTER_READ);
                        for planned in planned {
                            self.put_back(planned, Some((at.now, planned.kind)), out);
                        }
                    }
                }
            }
            Event::Freed { endpoint, outcome, took } => {
                self.posts = self.posts.saturating_sub(1);
                self.planner.finished(endpoint, outcome, took);
            }
            Event::Ended(ended) => {
                self.stores.gathering.get_or_insert(at.steady);
                self.ended.push_back(*ended);
            }
            Event::Stored(batch, how, settled) => {
                self.stores.under_way = self.stores.under_way.saturating_sub(1);
                match *settled {
                    Ok(settled) => self.stored(&batch, settled, at, out),
                    Err(failure) => self.store_again(batch, how, &failure, at),
                }
            }
            Event::Parked(endpoint, parked) => self.parked(endpoint, &parked, at),
        }
    }

    /// Plans what became pending.
    fn find(&mut self, news: News, at: Moment, out: &mut VecDeque<Command>) {
        if news.again {
            self.planner.clear();
        }
        for row in news.rows {
            let Some(due) = row.delivery.due(at.now) else { continue };
            if !self.owned.shards.contains_key(&row.shard) {
                continue;
            }
            let key = Key::of(&row.delivery);
            let added = self.planner.add(DueDelivery {
                delivery: key.delivery,
                endpoint: key.endpoint,
                account: row.account,
                shard: row.shard,
                event_created_at: key.event_created_at,
                due,
                kind: kind_of(&row.delivery),
            });
            if added == Added::Other {
                out.push_back(Command::LookAgain(Some(format!(
                    "delivery {} now belongs to endpoint {} and an event of {}",
                    key.delivery, key.endpoint, key.event_created_at
                ))));
            }
        }
    }

    /// Begins an attempt in memory, which is then made.
    fn begin(
        &mut self,
        planned: DueDelivery,
        read: Option<ToBegin>,
        at: Moment,
        out: &mut VecDeque<Command>,
    ) {
        // It has ended, or was parked or erased. A row that this process cannot read stays.
        let Some(read) = read else { return self.put_back(planned, None, out) };
        let key = Key::of(&read.delivery);
        let of = (planned.delivery, planned.endpoint, planned.event_created_at);
        if of != (key.delivery, key.endpoint, key.event_created_at) {
            out.push_back(Command::LookAgain(Some(format!(
                "delivery {} was planned for endpoint {} and an event of {}, but is for endpoint {} \
                 and an event of {}",
                planned.delivery, planned.endpoint, planned.event_created_at, key.endpoint,
                key.event_created_at
            ))));
            return self.put_back(planned, None, out);
        }
        let again_at = |instant| Some((instant, kind_of(&read.delivery)));
        let is_owned = self.owned.shards.contains_key(&planned.shard);
        if self.is_stopping || !self.owned.is_valid(at) || !is_owned {
            // If its shard is still this sender's, it waits until the lease is renewed.
            return self.put_back(planned, again_at(at.now), out);
        }
        let mut row = read.delivery;
        let attempt = match row.begin(&read.health, at.now) {
            Ok(attempt) => attempt,
            Err(BeginError::Parked) => {
                self.put_back(planned, None, out);
                // The others of an endpoint that was enabled since may be sent.
                if read.health.disabled().is_some() {
                    self.planner.forget(key.endpoint);
                }
                return self.park(key.endpoint, at);
            }
            Err(BeginError::Early { at: instant, .. }) => {
                return self.put_back(planned, again_at(instant), out);
            }
            Err(BeginError::Leased { until, .. } | BeginError::Disabled { until, .. }) => {
                return self.put_back(planned, again_at(until), out);
            }
            Err(_) => return self.put_back(planned, None, out),
        };
        if planned.kind != kind_of(&read.delivery) {
            // It became another kind since it was planned, and each kind has its own room.
            return self.put_back(planned, again_at(planned.due), out);
        }
        let ToBegin { name, opened, body, traceparent, .. } = read;
        if opened.destination.is_none() {
            // This sender may not call it, nor does waiting change that.
            let sent = Sent::without_answer(Outcome::Forbidden, at.now);
            let ended = Ended { key, row, attempt, opened, at: at.now, sent };
            self.planner.finished(key.endpoint, Outcome::Forbidden, Duration::ZERO);
            return self.hear(Event::Ended(Box::new(ended)), at, out);
        }
        self.posts = self.posts.saturating_add(1);
        let begun = Begun { key, row, attempt, name, opened, body, traceparent, at };
        out.push_back(Command::Post(Box::new(begun)));
    }

    /// Ends what is in hand of a delivery that was planned and not begun.
    fn put_back(
        &mut self,
        planned: DueDelivery,
        again: Option<(Timestamp, DueKind)>,
        out: &mut VecDeque<Command>,
    ) {
        self.planner.finished(planned.endpoint, Outcome::Unsent, Duration::ZERO);
        self.release(planned.delivery, planned.shard, again, out);
    }

    /// Ends what is in hand of a delivery. It waits for its next attempt if its shard is still owned; if its number is
    /// another's by now, that one is found again.
    fn release(
        &mut self,
        delivery: u64,
        shard: u16,
        again: Option<(Timestamp, DueKind)>,
        out: &mut VecDeque<Command>,
    ) {
        let is_owned = self.owned.shards.contains_key(&shard);
        if self.planner.release(delivery, again.filter(|_| is_owned)) {
            out.push_back(Command::LookAgain(None));
        }
    }

    /// Hears that attempts are stored.
    fn stored(
        &mut self,
        batch: &[Ended],
        settled: Settled<u64, u32>,
        at: Moment,
        out: &mut VecDeque<Command>,
    ) {
        self.stores.wait = AGAIN;
        let again: BTreeMap<u64, Timestamp> =
            settled.again.iter().map(|(id, _, due)| (*id, *due)).collect();
        let rows: BTreeMap<u64, &Delivery> =
            settled.deliveries.iter().map(|(id, row)| (*id, row)).collect();
        for ended in batch {
            let row = rows.get(&ended.key.delivery).copied().unwrap_or(&ended.row);
            let again = again.get(&ended.key.delivery).map(|due| (*due, kind_of(row)));
            self.release(ended.key.delivery, ended.opened.names.shard, again, out);
        }
        let of = |endpoint: u32| batch.iter().find(|ended| ended.key.endpoint == endpoint);
        for (endpoint, alert) in &settled.alerts {
            if let Some(ended) = of(*endpoint) {
                ended.opened.names.told(alert);
            }
        }
        for (endpoint, reason) in settled.disabled {
            if let Some(ended) = of(endpoint) {
                let Names { account, endpoint, .. } = &ended.opened.names;
                let reason = reason.as_str();
                log::info!(account, endpoint, reason, "an endpoint is disabled");
            }
            self.planner.forget(endpoint);
            self.park(endpoint, at);
            let health = settled.endpoints.iter().find(|(number, _)| *number == endpoint);
            if let (Some(ended), Some((_, health))) = (of(endpoint), health) {
                let opened = Arc::clone(&ended.opened);
                out.push_back(Command::CountMissed(Box::new(*health), opened));
            }
        }
    }

    /// Has a batch stored again: a result is kept while this process lives.
    fn store_again(&mut self, batch: Vec<Ended>, how: How, failure: &Failure, at: Moment) {
        let wait = match (failure, how) {
            // Somebody was first. The next time, the rows are locked.
            (Failure::Outdated, How::Quick) => Duration::ZERO,
            _ => {
                let wait = self.stores.wait;
                self.stores.wait = wait.saturating_mul(2).min(AGAIN_AT_MOST);
                wait
            }
        };
        self.stores.waiting.push((at.steady.saturating_add(wait), batch));
    }

    /// Has an endpoint parked, once at a time, and once more if that is asked for meanwhile.
    fn park(&mut self, endpoint: u32, at: Moment) {
        let now = Walk { at: Some(at.steady), is_asked_again: false };
        let walk = self.parking.entry(endpoint).or_insert(now);
        walk.is_asked_again = walk.at.is_none();
    }

    fn parked(&mut self, endpoint: u32, parked: &Done<()>, at: Moment) {
        let Some(walk) = self.parking.get_mut(&endpoint) else { return };
        match parked {
            Ok(()) if !walk.is_asked_again => _ = self.parking.remove(&endpoint),
            Ok(()) => walk.at = Some(at.steady),
            Err(_) => walk.at = Some(at.steady.saturating_add(AFTER_PARK)),
        }
    }
}

/// Returns the kind of the next attempt of a delivery.
fn kind_of(delivery: &Delivery) -> DueKind {
    match (delivery.is_manual(), delivery.attempts()) {
        (true, _) => DueKind::Redelivery,
        (false, 0) => DueKind::First,
        (false, _) => DueKind::Retry,
    }
}
