//! The simulation's store is held to the truth: the same steps of the port by two to four sessions, in the same order,
//! over it and over PostgreSQL. Both give the same rows, refuse the same, and have the same sessions wait.
//!
//! Most of an interleaving's time passes while somebody waits, so several run at once, each over a server of its own.
//! The test takes longest of this folder, so its name is among the first, as tests begin by their names.
//!
//! The variable `TRUTH` says how many interleavings, and `TRUTH_FROM` the first. One that differs is told as the
//! fewest steps that still do.
//!
//! PostgreSQL promises no order among sessions that go on at the same moment: an interleaving ends before that.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant::webhook::sender::{
    Delivery, EndpointHealth, Outcome, Recovery, RecoveryBy, RecoveryFilter,
};
use call_assistant::webhook::{Signer, SigningSecret};
use call_assistant_postgres::db::{Database, DbError};
use call_assistant_postgres::queue;
use host::rows::{
    Change, Changes, Done, Failure, Key, Lock, Locked, Names, Opened, Progress, Search, Shards,
    Writes,
};
use host::store::plan::Plan;
use http::StatusCode;
use testing::store::{Calm, EndpointRow, Place, Store, Time};
use tokio::runtime;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::support::service::Service;

/// How long PostgreSQL may differ from what is expected until it counts: it may only be slow. Shorter while
/// whoever is busy waits for a lock.
const PATIENCE: Duration = Duration::from_secs(20);
const STILL: Duration = Duration::from_secs(5);

/// How long an answer may take until the server is asked who waits.
const SOON: Duration = Duration::from_millis(20);

/// For how long two may wait for each other, and longer than that.
const DEADLOCK: (&str, Duration) = ("10ms", Duration::from_millis(60));

/// How long an interleaving is, and how many run at once.
const TURNS: u64 = 16;
const LANES: usize = 3;

/// A step of a session.
#[derive(Clone, Debug)]
enum Action {
    /// Which of the deliveries, by bits.
    Lock(u64),
    Endpoints(u64, Lock),
    /// Of an endpoint.
    Pending(usize),
    Disabled,
    Recovery(usize),
    Count(usize),
    /// Of an endpoint, so many at most.
    Missed(usize, u32),
    /// What becomes of which deliveries and of which endpoint, and whether the recovery that is locked goes on.
    Write(Vec<(usize, Becomes)>, Option<(usize, Deed)>, bool),
    Commit,
    RollBack,
}

#[derive(Clone, Copy, Debug)]
enum Becomes {
    Failed,
    Delivered,
    Parked,
    Redelivered,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Moved,
    Paused,
    Enabled,
    Gone,
}

/// A step, and whose.
type Turn = (usize, Action);

/// What came of a turn: what each session has said, and who waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Came {
    said: BTreeMap<usize, String>,
    waiting: Vec<usize>,
}

/// What all sessions know: the rows as they were in the beginning. Each store has its own numbers.
#[derive(Clone, Debug)]
struct Rows {
    deliveries: Vec<Delivery>,
    endpoints: Vec<(u32, EndpointHealth)>,
    recoveries: Vec<u64>,
    shards: Vec<u16>,
    now: Timestamp,
}

impl Rows {
    fn nth(&self, id: u64) -> usize {
        self.deliveries.iter().position(|row| row.id() == id).unwrap()
    }

    fn shown(&self, row: &Delivery) -> String {
        let (nth, is) = (self.nth(row.id()), row.status().as_str());
        format!("{nth} {is} {} v{}, ", row.attempts(), row.version())
    }

    fn before(&self) -> u64 {
        self.deliveries.iter().map(Delivery::id).min().unwrap() - 1
    }

    fn searched(&self, endpoint: usize) -> Search {
        let (number, health) = self.endpoints[endpoint];
        let missed = RecoveryFilter::between(Timestamp::MIN, self.now, self.now);
        let shard = self.shards[endpoint];
        Search { shard, endpoint: number, missed: missed.with_endpoint(&health) }
    }
}

/// A session: what it has read, and its transaction.
struct Session<S: Changes> {
    store: S,
    rows: Rows,
    locked: BTreeMap<usize, Locked>,
    endpoints: BTreeMap<u32, EndpointHealth>,
    recovery: Option<(u64, Recovery<u64>, Progress)>,
    change: Option<S::Change>,
}

impl<S: Changes> Session<S> {
    fn new(store: &S, rows: &Rows) -> Self {
        let (locked, endpoints) = (BTreeMap::new(), rows.endpoints.iter().copied().collect());
        let (store, rows) = (store.clone(), rows.clone());
        Self { store, rows, locked, endpoints, recovery: None, change: None }
    }

    /// Takes a step, and says what came of it. A failure ends the transaction.
    async fn act(&mut self, action: &Action) -> String {
        let mut change = match (self.change.take(), action) {
            (Some(change), _) => change,
            (None, Action::RollBack) => return "rolled back".to_owned(),
            (None, _) => self.store.change().await.unwrap(),
        };
        let done = match action {
            Action::Commit => {
                self.recovery = None;
                return format!("committed: {}", change.commit().await.is_ok());
            }
            Action::RollBack => Err(None),
            action => self.step(&mut change, action).await.map_err(Some),
        };
        match done {
            Ok(said) => {
                self.change = Some(change);
                said
            }
            Err(why) => {
                change.roll_back().await;
                self.recovery = None;
                match why {
                    None => "rolled back",
                    Some(Failure::Outdated) => "outdated",
                    Some(Failure::Refused(_) | Failure::Unknown(_)) => "refused",
                }
                .to_owned()
            }
        }
    }

    async fn step(&mut self, change: &mut S::Change, action: &Action) -> Done<String> {
        let (mut said, rows) = (String::new(), self.rows.clone());
        let shows = |locked: Locked| {
            said += &rows.shown(&locked.row);
            self.locked.insert(rows.nth(locked.row.id()), locked);
        };
        match action {
            Action::Lock(some) => {
                let all = rows.deliveries.iter().enumerate();
                let keys = all.filter(|(nth, _)| some >> nth & 1 == 1);
                let keys: Vec<Key> = keys.map(|(_, row)| Key::of(row)).collect();
                change.lock(&keys).await?.into_values().for_each(shows);
            }
            Action::Endpoints(some, lock) => {
                let all = rows.endpoints.iter().enumerate();
                let some = all.filter(|(nth, _)| some >> nth & 1 == 1);
                let numbers: Vec<u32> = some.map(|(_, (number, _))| *number).collect();
                let found = change.endpoints(&numbers, *lock).await?;
                for (number, health) in &found {
                    write!(said, "{number} v{}, ", health.version()).unwrap();
                }
                self.endpoints.extend(found);
            }
            Action::Pending(endpoint) => {
                let (number, _) = rows.endpoints[*endpoint];
                let page = change.lock_pending(number, rows.before()).await?;
                page.rows.into_iter().map(Locked::of).for_each(shows);
            }
            Action::Disabled => {
                let later = rows.now.saturating_add(Duration::from_secs(4 * 86_400));
                let shards: Shards = rows.shards.iter().map(|shard| (*shard, 0)).collect();
                for (health, _) in change.lock_disabled(&shards, None, later).await?.rows {
                    write!(said, "{} v{}, ", health.id(), health.version()).unwrap();
                    self.endpoints.insert(health.id().try_into().unwrap(), health);
                }
            }
            Action::Recovery(endpoint) => {
                let id = rows.recoveries[*endpoint];
                let found = change.lock_recovery(id).await?.unwrap();
                let (endpoint, progress) = (found.endpoint, found.progress);
                let pending = found.pending;
                write!(said, "v{}, {pending} pending, {progress:?}", endpoint.version()).unwrap();
                self.recovery = Some((id, found.recovery, progress));
            }
            Action::Count(endpoint) => {
                let counted = change.count(&rows.searched(*endpoint), rows.before()).await?;
                write!(said, "{}", counted.counted).unwrap();
            }
            Action::Missed(endpoint, most) => {
                let search = rows.searched(*endpoint);
                let page = change.lock_missed(&search, rows.before(), None, *most).await?;
                page.rows.into_iter().for_each(shows);
            }
            Action::Write(deliveries, endpoint, goes_on) => {
                self.write(change, deliveries, *endpoint, *goes_on).await?;
            }
            // They end the transaction, and are not steps of it.
            Action::Commit | Action::RollBack => {}
        }
        Ok(said)
    }

    async fn write(
        &mut self,
        change: &mut S::Change,
        becomes: &[(usize, Becomes)],
        endpoint: Option<(usize, Deed)>,
        goes_on: bool,
    ) -> Done<()> {
        let (now, mut deliveries) = (self.rows.now, Vec::new());
        for (nth, becomes) in becomes {
            let first = Locked::of(self.rows.deliveries[*nth]);
            let locked = *self.locked.get(nth).unwrap_or(&first);
            let mut row = locked.row;
            let health = self.endpoints[&Key::of(&row).endpoint];
            match becomes {
                Becomes::Failed => _ = ends(&mut row, &health, Outcome::Reset, now),
                Becomes::Delivered => {
                    _ = ends(&mut row, &health, Outcome::Answered(StatusCode::OK), now);
                }
                Becomes::Parked => {
                    let mut paused = health;
                    let _ = paused.pause(now);
                    let _ = row.park(&paused, now);
                }
                Becomes::Redelivered => _ = row.redeliver(&health, now),
            }
            if row.if_version().is_some() {
                deliveries.push((locked, row));
            }
        }
        let mut endpoints = Vec::new();
        if let Some((nth, deed)) = endpoint {
            let (number, _) = self.rows.endpoints[nth];
            let mut health = self.endpoints[&number];
            match deed {
                Deed::Moved => _ = health.moved(now),
                Deed::Paused => _ = health.pause(now),
                Deed::Enabled => _ = health.enable(now),
                Deed::Gone => {
                    let of = |row: &&Delivery| Key::of(row).endpoint == number;
                    let mut row = *self.rows.deliveries.iter().find(of).unwrap();
                    let gone = Outcome::Answered(StatusCode::GONE);
                    let report = ends(&mut row, &health, gone, now);
                    report.into_iter().for_each(|report| _ = health.record(report, now).unwrap());
                }
            }
            endpoints.extend(health.if_version().map(|_| (number, health)));
        }
        if let Some((_, _, progress)) = self.recovery.as_mut().filter(|_| goes_on) {
            progress.counted += 1;
        }
        let recovery = self.recovery.as_ref().filter(|_| goes_on);
        let recovery = recovery.map(|(id, recovery, progress)| (*id, recovery, Some(*progress)));
        let written: Vec<Delivery> = deliveries.iter().map(|(_, row)| row.into_stored()).collect();
        let writes = Writes { deliveries, endpoints: &endpoints, recovery, ..Writes::at(now) };
        change.write(&writes).await?;
        // As a step does, a transaction writes a recovery once. The second time PostgreSQL would lock its endpoint, as
        // it does for whatever was written by the transaction itself and refers to another row.
        self.recovery.take_if(|_| goes_on);
        for row in written {
            self.locked.insert(self.rows.nth(row.id()), Locked::of(row));
        }
        self.endpoints.extend(endpoints.iter().map(|(of, health)| (*of, health.into_stored())));
        Ok(())
    }
}

/// Makes an attempt, if one may be made.
fn ends(
    row: &mut Delivery,
    health: &EndpointHealth,
    outcome: Outcome,
    now: Timestamp,
) -> Option<call_assistant::webhook::sender::AttemptReport> {
    let attempt = row.begin(health, now).ok()?;
    Some(row.finish(&attempt, outcome, now).unwrap())
}

/// The sessions of an interleaving, as seen from outside.
struct Sessions {
    go: Vec<mpsc::UnboundedSender<Action>>,
    done: mpsc::UnboundedReceiver<(usize, String)>,
    busy: Vec<bool>,
}

impl Sessions {
    fn new<S: Changes>(
        store: &S,
        rows: &Rows,
        count: usize,
    ) -> (Self, Vec<impl Future<Output = ()> + use<S>>) {
        let (says, done) = mpsc::unbounded_channel();
        let (mut go, mut work) = (Vec::new(), Vec::new());
        for nth in 0..count {
            let (sender, mut told) = mpsc::unbounded_channel();
            let (mut session, says) = (Session::new(store, rows), says.clone());
            go.push(sender);
            work.push(async move {
                while let Some(action) = told.recv().await {
                    let _ = says.send((nth, session.act(&action).await));
                }
                if let Some(change) = session.change {
                    change.roll_back().await;
                }
            });
        }
        (Self { go, done, busy: vec![false; count] }, work)
    }

    /// Has a session take a step. `false`: it waits.
    fn tell(&mut self, (nth, action): &Turn) -> bool {
        let is_free = !std::mem::replace(&mut self.busy[*nth], true);
        if is_free {
            self.go[*nth].send(action.clone()).unwrap();
        }
        is_free
    }

    /// Hears all that was said since.
    fn hear(&mut self, came: &mut Came, first: Option<(usize, String)>) {
        let others = std::iter::from_fn(|| self.done.try_recv().ok());
        for (nth, said) in first.into_iter().chain(others) {
            came.said.insert(nth, said);
            self.busy[nth] = false;
        }
        came.waiting = (0..self.busy.len()).filter(|nth| self.busy[*nth]).collect();
    }
}

/// Runs an interleaving over the simulation's store. Nothing runs but what is polled here. Returns the turns that were
/// taken, each with what came of it.
fn simulated(store: &Store, rows: &Rows, turns: &[Turn]) -> Vec<(Turn, Came)> {
    let count = turns.iter().map(|(nth, _)| nth + 1).max().unwrap_or(0);
    let (mut sessions, work) = Sessions::new(store, rows, count);
    // A runtime would have them pause after so many messages.
    let unconstrained = work.into_iter().map(tokio::task::unconstrained);
    let mut work: Vec<_> = unconstrained.map(Box::pin).collect();
    let mut context = Context::from_waker(Waker::noop());
    let mut taken = Vec::new();
    for turn in turns {
        if !sessions.tell(turn) {
            continue;
        }
        let before = store.tables().waits();
        // Each statement lets others run once; those that still do not end wait.
        for _ in 0..32 {
            for work in &mut work {
                assert_eq!(work.as_mut().poll(&mut context), Poll::Pending);
            }
        }
        let after = store.tables().waits();
        if before.iter().filter(|wait| !after.contains(wait)).count() > 1 {
            break;
        }
        let mut came = Came::default();
        sessions.hear(&mut came, None);
        taken.push((turn.clone(), came));
    }
    taken
}

/// Runs it over PostgreSQL. Returns where it differs.
async fn real(world: &World, taken: &[(Turn, Came)]) -> Option<String> {
    let count = taken.iter().map(|((nth, _), _)| nth + 1).max().unwrap_or(0);
    let (mut sessions, work) = Sessions::new(&world.database, &world.rows, count);
    let tasks: Vec<_> = work.into_iter().map(tokio::spawn).collect();
    let mut unlike = None;
    for (nth, (turn, expected)) in taken.iter().enumerate() {
        if expected.said.values().any(|said| said == "refused") {
            // Of those that wait for each other, the last is ended: the others have looked before.
            sleep(DEADLOCK.1).await;
        }
        assert!(sessions.tell(turn));
        let (mut since, mut came) = (Instant::now(), Came::default());
        let limit = since + PATIENCE;
        loop {
            let before = came.clone();
            let first = match came.said.len() < expected.said.len() {
                true => timeout(SOON, sessions.done.recv()).await.ok().flatten(),
                false => None,
            };
            sessions.hear(&mut came, first);
            let is_still = world.waiting(came.waiting.len()).await;
            if is_still && came == *expected {
                break;
            }
            if !is_still || came != before {
                since = Instant::now();
            }
            if STILL < since.elapsed() || limit < Instant::now() {
                unlike = Some(format!("turn {nth}: {came:?}, and not {expected:?}"));
                break;
            }
            tokio::task::yield_now().await;
        }
        if unlike.is_some() {
            break;
        }
    }
    drop(sessions);
    for task in tasks {
        task.await.unwrap();
    }
    unlike
}

/// The database, and its rows at the beginning of each interleaving.
struct World {
    database: Database,
    watching: Database,
    service: Service,
    rows: Rows,
    events: Vec<EventBody>,
    signer: Signer,
    /// Makes the rows those of the beginning again. An interleaving writes no others.
    reset: String,
}

impl World {
    async fn new() -> Self {
        let service = Service::new().await;
        let paths = ["/one", "/two"].map(|path| service.endpoint(path, &[]));
        let shard = |path: &String| queue::shard_of(path.trim_start_matches("/endpoints/"));
        let shards = paths.iter().map(|path| shard(path).cast_unsigned()).collect();
        for path in &paths {
            service.post(&format!("{path}/recover"), 202);
        }
        let options =
            format!("-c deadlock_timeout={} -c lock_timeout=0 -c statement_timeout=0", DEADLOCK.0);
        let options = options.replace(' ', "%20").replace('=', "%3D");
        let url = format!("{}?options={options}", service.world.server.url());
        let database = Database::new(&url, 4).unwrap().unhurried();
        let watching = service.world.database.clone();
        let session = watching.session().await.unwrap();
        let sql = "SELECT id FROM recoveries ORDER BY endpoint";
        let found = session.query(sql, &[]).await.unwrap();
        let recoveries = found.iter().map(|row| row.get::<_, i64>(0).cast_unsigned()).collect();
        session.keep();

        let accepted = watching.change(async |change| {
            let now = queue::started_at(change).await?;
            let (mut events, mut deliveries) = (Vec::new(), Vec::new());
            for event in [event(1, now), event(2, now)] {
                let accepted = queue::accept(change, &event, None, None, now).await?;
                let queue::Accepted::New(new) = accepted else { panic!("{accepted:?}") };
                let stored = |(_, id, row): (_, i64, Delivery)| row.with_id(id.cast_unsigned());
                deliveries.extend(new.into_iter().map(stored).map(Delivery::into_stored));
                events.push(event);
            }
            Ok::<_, DbError>((events, deliveries))
        });
        let (events, mut deliveries) = accepted.await.unwrap();
        deliveries.sort_by_key(Delivery::id);
        // No table is locked to be made shorter while sessions wait for rows of it.
        let copy = "ALTER TABLE deliveries SET (vacuum_truncate = false);
            CREATE TABLE beginning AS TABLE deliveries";
        service.run(copy).await;
        // Of one day: the table has a partition for each.
        let reset = format!(
            "DELETE FROM ended WHERE event_created_at >= '{}';
            DELETE FROM deliveries;
            INSERT INTO deliveries TABLE beginning;
            UPDATE endpoints SET disabled = NULL, since = '2026-01-01', failures = 0,
                generation = 0, version = 0, first_failures = 0, first_failed_at = NULL, reminders = 0;
            UPDATE recoveries SET counted = 0, counted_to = 0, searched_to = NULL",
            events[0].created_at().floor_to_micros()
        );
        service.run(&reset).await;
        let mut change = Changes::change(&database).await.unwrap();
        let endpoints = change.endpoints(&[0, 1], Lock::No).await.unwrap().into_iter().collect();
        change.roll_back().await;
        // Whatever waits is due.
        let now = events[0].created_at().saturating_add(Duration::from_secs(86_400));
        let now = now.floor_to_micros();
        let rows = Rows { deliveries, endpoints, recoveries, shards, now };
        let signer = Signer::new(SigningSecret::from_random([1; 32]));
        Self { database, watching, service, rows, events, signer, reset }
    }

    /// Tells whether so many sessions wait for a lock.
    async fn waiting(&self, count: usize) -> bool {
        if count == 0 {
            return true;
        }
        // A session that ends its transaction grants the locks that others wait for, before it is answered. The processes
        // of the others show later that they wait no longer.
        let sql = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
            WHERE NOT granted AND backend_type = 'client backend'";
        let waiting = self.watching.read(async |client| {
            let sql = client.prepare_cached(sql).await?;
            Ok::<i64, DbError>(client.query_one(&sql, &[]).await?.try_get(0)?)
        });
        usize::try_from(waiting.await.unwrap()) == Ok(count)
    }

    /// Returns the simulation's store at the beginning of an interleaving.
    async fn simulated(&self) -> (Store, Rows) {
        let (real, now) = (&self.rows, self.rows.now);
        let accepted_at = self.events[0].created_at().floor_to_micros();
        let store = Store::new(Time::default(), Arc::new(Calm), accepted_at, 16);
        for ((number, health), shard) in real.endpoints.iter().zip(&real.shards) {
            let names = Names { account: "acct_1".into(), endpoint: "we".into(), shard: *shard };
            let signer = self.signer.clone();
            let opened = Arc::new(Opened { names, destination: None, signer });
            store.add_endpoint(*number, EndpointRow { health: *health, account: 1, opened });
        }
        let mut ids = Vec::new();
        for event in &self.events {
            ids.extend(store.accept(1, |_| event.clone()).await.unwrap().1);
        }
        let mut change = store.change().await.unwrap();
        for (number, health) in &real.endpoints {
            let missed = RecoveryFilter::between(Timestamp::MIN, now, now);
            let by = (RecoveryBy::Dashboard, Plan::LARGEST.webhooks);
            change.recover(*number, missed.recover(by.0, by.1, health, now).unwrap());
        }
        change.commit().await.unwrap();
        let of = |(place, _): (&Place, _)| match place {
            Place::Recovery(id) => Some(*id),
            _ => None,
        };
        let recoveries = store.tables().rows().filter_map(of).collect();
        let deliveries = real.deliveries.iter().zip(ids).map(|(row, id)| row.with_id(id)).collect();
        (store, Rows { deliveries, recoveries, ..real.clone() })
    }

    /// Runs an interleaving over both, and returns the turns that were taken, and where they differ.
    async fn run(&self, turns: &[Turn]) -> (Vec<(Turn, Came)>, Option<String>) {
        let sessions = turns.iter().map(|(nth, _)| nth + 1).max().unwrap_or(0);
        // All end, also those that waited for others, and somebody looks at what is stored.
        let ends = (0..sessions * sessions).map(|nth| (nth % sessions, Action::RollBack));
        let looks = [Action::Lock(15), Action::Endpoints(3, Lock::No), Action::Recovery(0)];
        let looks = looks.into_iter().map(|action| (0, action));
        let all: Vec<Turn> = turns.iter().cloned().chain(ends).chain(looks).collect();
        let (store, rows) = self.simulated().await;
        let taken = simulated(&store, &rows, &all);
        self.service.run(&self.reset).await;
        let unlike = real(self, &taken).await;
        (taken, unlike)
    }

    /// Returns the fewest turns that still differ.
    async fn smallest(&self, mut turns: Vec<Turn>, mut unlike: String) -> (Vec<Turn>, String) {
        let mut nth = 0;
        while nth < turns.len() {
            let mut fewer = turns.clone();
            fewer.remove(nth);
            match self.run(&fewer).await.1 {
                Some(still) => (turns, unlike) = (fewer, still),
                None => nth += 1,
            }
        }
        (turns, unlike)
    }

    /// Has the statements of each connection prepared, so that they are sent in the order in which they stand.
    async fn warm(&self) {
        let all = [Becomes::Failed, Becomes::Delivered, Becomes::Parked, Becomes::Redelivered];
        let mut sessions: Vec<_> =
            (0..4).map(|_| Session::new(&self.database, &self.rows)).collect();
        // Each has its connection before any of them has a lock.
        for session in &mut sessions {
            session.act(&Action::Count(0)).await;
        }
        for session in &mut sessions {
            // One that waits and one that ends: both are locked first.
            let both = vec![(2, Becomes::Failed), (3, Becomes::Delivered)];
            session.act(&Action::Write(both, None, false)).await;
            for becomes in all {
                let both = vec![(0, becomes), (2, Becomes::Failed)];
                session.act(&Action::Write(both, Some((0, Deed::Moved)), false)).await;
            }
            session.act(&Action::Write(vec![(1, Becomes::Delivered)], None, false)).await;
            session.act(&Action::Write(vec![(1, Becomes::Redelivered)], None, false)).await;
            session.act(&Action::RollBack).await;
        }
    }
}

fn event(number: u64, now: Timestamp) -> EventBody {
    let id = EventId::parse(&format!("evt_truth_{number}")).unwrap();
    let account = AccountId::parse("acct_1").unwrap();
    let version = ApiVersion::parse("2026-01-15").unwrap();
    NewEvent::new(id, account, version, Origin::voice(), now).ping("hello").unwrap()
}

/// Dice that fall the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn nth(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap()
    }

    fn action(&mut self) -> Action {
        let kinds = [Becomes::Failed, Becomes::Delivered, Becomes::Parked, Becomes::Redelivered];
        let deeds = [Deed::Moved, Deed::Paused, Deed::Enabled, Deed::Gone];
        match self.below(18) {
            0 | 1 => Action::Lock(1 + self.below(15)),
            2 => Action::Endpoints(1 + self.below(3), Lock::No),
            3 => Action::Endpoints(1 + self.below(3), Lock::Yes),
            4 => Action::Pending(self.nth(2)),
            5 => Action::Disabled,
            6 => Action::Recovery(self.nth(2)),
            7 => Action::Count(self.nth(2)),
            8 | 9 => Action::Missed(self.nth(2), [1, 100][self.nth(2)]),
            10..=13 => {
                let some = 1 + self.below(15);
                let rows = (0..4).filter(|nth| some >> nth & 1 == 1);
                let rows = rows.map(|nth| (nth, kinds[self.nth(4)])).collect();
                let endpoint = (self.below(3) == 0).then(|| (self.nth(2), deeds[self.nth(4)]));
                Action::Write(rows, endpoint, self.below(2) == 0)
            }
            14..=16 => Action::Commit,
            _ => Action::RollBack,
        }
    }
}

/// Runs interleavings, and counts turns: all, those in which somebody waits, and what was refused or outdated.
async fn lane(next: &AtomicU64, end: u64) -> [usize; 4] {
    let world = World::new().await;
    world.warm().await;
    let mut counts = [0; 4];
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if end <= seed {
            return counts;
        }
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let sessions = 2 + dice.nth(3);
        let turns: Vec<Turn> = (0..TURNS).map(|_| (dice.nth(sessions), dice.action())).collect();
        let (taken, unlike) = world.run(&turns).await;
        if let Some(unlike) = unlike {
            next.store(end, Ordering::Relaxed);
            println!("interleaving {seed} differs: {unlike}");
            let (turns, unlike) = world.smallest(turns, unlike).await;
            panic!("interleaving {seed}: {turns:#?}\n{unlike}");
        }
        for (_, came) in &taken {
            let says = |what: &str| came.said.values().any(|said| said == what);
            let is = [true, !came.waiting.is_empty(), says("refused"), says("outdated")];
            counts = std::array::from_fn(|nth| counts[nth] + usize::from(is[nth]));
        }
    }
}

#[test]
fn the_simulations_store_does_what_postgresql_does() {
    let number = |name, or| std::env::var(name).map_or(or, |text| text.parse::<u64>().unwrap());
    let (count, from) = (number("TRUTH", 700), number("TRUTH_FROM", 1));
    let next = AtomicU64::new(from);
    let run = || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(lane(&next, from + count))
    };
    let counts: Vec<[usize; 4]> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(run)).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).collect()
    });
    let [turns, waits, refused, outdated] =
        std::array::from_fn(|nth| counts.iter().map(|of| of[nth]).sum::<usize>());
    println!(
        "{count} interleavings of {turns} turns: somebody waits in {waits}, {refused} are refused, {outdated} are \
         outdated"
    );
    assert!(waits > 0 && refused > 0 && outdated > 0);
}
