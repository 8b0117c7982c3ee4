//! A store that notes each call of the port.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Delivery, DeliveryColumns, EndpointColumns, EndpointHealth, LimitOf,
};
use host::rows::{
    Change, Changes, CountedPage, Done, Failure, Key, Lock, Locked, MissedPage, Names, News, Page,
    Rows, RunningRecovery, Search, SetLimit, Shards, ToBegin, Writes,
};

use crate::store::Time;

/// A store of rows, and the text of what it was asked. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Recorded<S> {
    rows: S,
    pub(super) tape: Tape,
}

/// The text of calls. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Tape {
    time: Time,
    text: Arc<Mutex<Text>>,
    /// Whether a call is under way.
    is_busy: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Text {
    lines: Vec<String>,
    transactions: usize,
    deliveries: Ids,
    endpoints: Ids,
    accounts: Ids,
    /// Whether something may have become pending that no call has told yet.
    has_news: bool,
    has_limits: bool,
    told: BTreeSet<u64>,
    limits: Vec<SetLimit>,
}

/// Ids in the order of their appearance.
#[derive(Debug, Default)]
struct Ids(BTreeMap<u64, usize>);

impl Ids {
    fn of(&mut self, id: u64) -> usize {
        let next = self.0.len();
        *self.0.entry(id).or_insert(next)
    }
}

impl<S> Recorded<S> {
    pub(super) fn new(rows: S, time: Time) -> Self {
        let text = Text { has_news: true, ..Text::default() };
        let is_busy = Arc::default();
        Self { rows, tape: Tape { time, text: Arc::new(Mutex::new(text)), is_busy } }
    }
}

impl Tape {
    pub(super) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.text().lines.clone()
    }

    /// Says that something has become pending.
    pub(super) fn tell(&self) {
        self.text().has_news = true;
        self.time.stir();
    }

    /// Sets the limits that the store does not keep itself.
    pub(super) fn limit(&self, limits: Vec<SetLimit>) {
        let mut text = self.text();
        (text.limits, text.has_limits) = (limits, true);
        self.time.stir();
    }

    fn text(&self) -> MutexGuard<'_, Text> {
        self.text.lock().unwrap()
    }

    async fn call<T>(&self, call: impl Future<Output = T>) -> T {
        self.is_busy.store(true, Ordering::Relaxed);
        let done = call.await;
        self.is_busy.store(false, Ordering::Relaxed);
        done
    }

    fn note(&self, line: impl FnOnce(&mut Text) -> String) {
        let mut text = self.text();
        let line = line(&mut text);
        let at = self.time.now().as_secs_f64();
        text.lines.push(format!("{at:.6} {line}"));
    }
}

impl Text {
    fn key(&mut self, key: &Key) -> String {
        let (delivery, endpoint) =
            (self.deliveries.of(key.delivery), self.endpoints.of(key.endpoint.into()));
        format!("d{delivery} of e{endpoint} {}", key.event_created_at)
    }

    fn keys(&mut self, keys: &[Key]) -> String {
        keys.iter().map(|key| self.key(key)).collect::<Vec<_>>().join(", ")
    }

    fn endpoint(&mut self, number: u32) -> String {
        format!("e{}", self.endpoints.of(number.into()))
    }

    fn delivery(&mut self, row: &Delivery) -> String {
        format!("{}: {:?}", self.key(&Key::of(row)), DeliveryColumns::from(*row))
    }

    fn locked(&mut self, locked: &Locked) -> String {
        format!("{} {}", locked.is_pending, self.delivery(&locked.row))
    }

    fn health(&mut self, health: &EndpointHealth) -> String {
        let number = self.endpoint(u32::try_from(health.id()).unwrap());
        format!("{number}: {:?}", EndpointColumns::from(*health))
    }

    fn limit(&mut self, limit: &SetLimit) -> String {
        let of = match limit.of {
            LimitOf::Account(account) => format!("account a{}", self.accounts.of(account.into())),
            LimitOf::Endpoint(endpoint) => self.endpoint(endpoint),
            of => format!("{of:?}"),
        };
        format!("{of} {}", limit.per_second)
    }

    fn writes(&mut self, writes: &Writes<'_>) -> String {
        let mut text = String::new();
        for (locked, row) in &writes.deliveries {
            let (locked, row) = (self.locked(locked), DeliveryColumns::from(*row));
            write!(text, "\n  delivery {locked} -> {row:?}").unwrap();
        }
        for (number, health) in writes.endpoints {
            let (number, health) = (self.endpoint(*number), EndpointColumns::from(*health));
            write!(text, "\n  endpoint {number}: {health:?}").unwrap();
        }
        for (number, alert) in writes.alerts {
            write!(text, "\n  alert {}: {alert:?}", self.endpoint(*number)).unwrap();
        }
        for (key, entry, signed) in &writes.attempts {
            let signed = signed.map(|signed| signed.t);
            write!(text, "\n  attempt {} {entry:?} {signed:?}", self.key(key)).unwrap();
        }
        if let Some((health, missed)) = writes.missed {
            write!(text, "\n  missed {missed} by {}", self.health(health)).unwrap();
        }
        let Writes { may_be_there, are_news, now, .. } = writes;
        assert!(writes.recovery.is_none(), "nobody recovers on this day");
        format!("at {now}, there {may_be_there}, news {are_news}{text}")
    }
}

/// Returns what came of a call, in words.
fn done<T>(result: &Done<T>, words: impl FnOnce(&T) -> String) -> String {
    match result {
        Ok(value) => words(value),
        Err(Failure::Outdated) => "outdated".to_owned(),
        Err(failure) => panic!("{failure:?}"),
    }
}

fn listed<T>(rows: impl IntoIterator<Item = T>, mut words: impl FnMut(T) -> String) -> String {
    rows.into_iter().map(|row| format!("\n  {}", words(row))).collect()
}

impl<S: Rows> Changes for Recorded<S> {
    type Change = RecordedChange<S::Change>;

    async fn change(&self) -> Done<Self::Change> {
        let change = self.tape.call(self.rows.change()).await?;
        let mut text = self.tape.text();
        text.transactions += 1;
        Ok(RecordedChange { change, tape: self.tape.clone(), number: text.transactions })
    }
}

impl<S: Rows> Rows for Recorded<S> {
    type Seen = S::Seen;

    /// Returns rows by ascending number, which no store promises, and each once: on this day nobody makes one due
    /// again but its sender.
    async fn news(&self, shards: &Shards, seen: &mut S::Seen) -> Done<News> {
        loop {
            if std::mem::take(&mut self.tape.text().has_limits) {
                return Ok(News::default());
            }
            if std::mem::take(&mut self.tape.text().has_news) {
                break;
            }
            self.tape.time.tick(Duration::ZERO).await;
        }
        let mut news = self.tape.call(self.rows.news(shards, seen)).await?;
        assert!(news.went_back.is_none(), "{news:?}");
        news.again = false;
        news.rows.sort_unstable_by_key(|row| row.delivery.id());
        news.rows.retain(|row| self.tape.text().told.insert(row.delivery.id()));
        self.tape.note(|text| {
            let rows = listed(&news.rows, |row| {
                format!(
                    "a{} {}",
                    text.accounts.of(row.account.into()),
                    text.delivery(&row.delivery)
                )
            });
            format!("news{rows}")
        });
        Ok(news)
    }

    async fn limits(&self) -> Done<Vec<SetLimit>> {
        let mut limits = self.tape.call(self.rows.limits()).await?;
        limits.extend(self.tape.text().limits.clone());
        self.tape.note(|text| format!("limits{}", listed(&limits, |limit| text.limit(limit))));
        Ok(limits)
    }

    async fn to_begin(&self, keys: &[Key], now: Timestamp) -> Done<Vec<Option<ToBegin>>> {
        let read = self.tape.call(self.rows.to_begin(keys, now)).await?;
        self.tape.note(|text| {
            let rows = listed(&read, |read| match read {
                None => "none".to_owned(),
                Some(read) => {
                    let ToBegin { delivery, health, opened, body, traceparent, .. } = read;
                    let (row, health) = (text.delivery(delivery), text.health(health));
                    let to = opened.destination.as_ref().map(|it| it.target().as_str().to_owned());
                    let Names { account, endpoint, .. } = &opened.names;
                    let event = body.id();
                    format!("{row} {health} {account} {endpoint} {to:?} {event} {traceparent:?}")
                }
            });
            format!("to_begin {} at {now}{rows}", text.keys(keys))
        });
        Ok(read)
    }

    async fn recoveries(&self, shards: &Shards, now: Timestamp) -> Done<Vec<u64>> {
        let running = self.tape.call(self.rows.recoveries(shards, now)).await?;
        self.tape.note(|_| format!("recoveries at {now}: {running:?}"));
        Ok(running)
    }
}

/// A transaction whose calls are noted.
#[derive(Debug)]
pub(super) struct RecordedChange<C> {
    change: C,
    tape: Tape,
    number: usize,
}

impl<C> RecordedChange<C> {
    fn note(&self, line: impl FnOnce(&mut Text) -> String) {
        self.tape.note(|text| format!("t{} {}", self.number, line(text)));
    }
}

impl<C: Change> Change for RecordedChange<C> {
    async fn lock(&mut self, keys: &[Key]) -> Done<BTreeMap<u64, Locked>> {
        let found = self.tape.call(self.change.lock(keys)).await;
        self.note(|text| {
            let rows = done(&found, |found| listed(found, |(_, locked)| text.locked(locked)));
            format!("lock {}{rows}", text.keys(keys))
        });
        found
    }

    async fn endpoints(
        &mut self,
        numbers: &[u32],
        lock: Lock,
    ) -> Done<BTreeMap<u32, EndpointHealth>> {
        let found = self.tape.call(self.change.endpoints(numbers, lock)).await;
        self.note(|text| {
            let asked: Vec<String> = numbers.iter().map(|number| text.endpoint(*number)).collect();
            let rows = done(&found, |found| listed(found, |(_, health)| text.health(health)));
            format!("endpoints {asked:?} {lock:?}{rows}")
        });
        found
    }

    async fn lock_pending(&mut self, endpoint: u32, after: u64) -> Done<Page<Delivery>> {
        let page = self.tape.call(self.change.lock_pending(endpoint, after)).await;
        self.note(|text| {
            let of = text.endpoint(endpoint);
            let after = (after != 0).then(|| text.deliveries.of(after));
            let rows = done(&page, |page| {
                let last = page.last.map(|last| text.deliveries.of(last));
                format!("{last:?}{}", listed(&page.rows, |row| text.delivery(row)))
            });
            format!("lock_pending {of} after {after:?}: last {rows}")
        });
        page
    }

    async fn lock_disabled(
        &mut self,
        shards: &Shards,
        after: Option<u64>,
        now: Timestamp,
    ) -> Done<Page<(EndpointHealth, Names)>> {
        let page = self.tape.call(self.change.lock_disabled(shards, after, now)).await;
        self.note(|text| {
            let after = after.map(|after| text.endpoints.of(after));
            let rows = done(&page, |page| {
                let last = page.last.map(|last| text.endpoints.of(last));
                format!("{last:?}{}", listed(&page.rows, |(health, _)| text.health(health)))
            });
            format!("lock_disabled after {after:?} at {now}: last {rows}")
        });
        page
    }

    async fn lock_recovery(&mut self, id: u64) -> Done<Option<RunningRecovery>> {
        panic!("nobody recovers on this day: {id}")
    }

    async fn count(&mut self, search: &Search, after: u64) -> Done<CountedPage> {
        let page = self.tape.call(self.change.count(search, after)).await;
        self.note(|text| {
            let Search { endpoint, missed, .. } = search;
            let counted = done(&page, |page| format!("{} up to {:?}", page.counted, page.to));
            format!("count {} {missed:?} after {after}: {counted}", text.endpoint(*endpoint))
        });
        page
    }

    async fn lock_missed(
        &mut self,
        search: &Search,
        _: u64,
        _: Option<u64>,
        _: u32,
    ) -> Done<MissedPage> {
        panic!("nobody recovers on this day: {search:?}")
    }

    async fn write(&mut self, writes: &Writes<'_>) -> Done<()> {
        let written = self.tape.call(self.change.write(writes)).await;
        self.note(|text| {
            let done = done(&written, |()| "done".to_owned());
            format!("write: {done}, {}", text.writes(writes))
        });
        written
    }

    async fn commit(self) -> Done<()> {
        let Self { change, tape, number } = self;
        let committed = tape.call(change.commit()).await;
        tape.note(|_| format!("t{number} commit: {}", done(&committed, |()| "done".to_owned())));
        committed
    }

    async fn roll_back(self) {
        let Self { change, tape, number } = self;
        tape.call(change.roll_back()).await;
        tape.note(|_| format!("t{number} roll_back"));
    }
}
