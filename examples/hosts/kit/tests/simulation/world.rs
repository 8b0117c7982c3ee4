//! A cluster in one process: senders, customers, receivers and the store, over one clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::LimitOf;
use host::rows::{Change as _, Changes as _, SetLimit};
use host::sender::Owned;
use testing::judge::Lost;
use testing::store::{Director, Store, Time};
use tokio::sync::watch;

use crate::customers;
use crate::faults::{Aim, Order};
use crate::net::{Net, Poster};
use crate::plan::{Deed, END, LAST_EVENT, MENDED, Plan, SHARDS};
use crate::sender::{self, Stop};
use crate::tasks::Tasks;
use crate::trace::Trace;
use crate::verdict::{self, Verdict};

/// How many steps a day has at most. One that is stuck ends so.
const STEPS: u64 = 1_000_000;

/// How long a sender that is asked to end has.
const GRACE: Duration = Duration::from_secs(15);

/// How far before something happens leases are renewed.
const BEFORE: Duration = Duration::from_millis(900);

/// How long it takes at most until each sender has renewed its leases, and sees that the store went back.
const AWAKE: Duration = Duration::from_secs(5);

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) time: Time,
    pub(crate) store: Store,
    pub(crate) net: Arc<Net>,
    pub(crate) trace: Arc<Trace>,
    /// What was accepted, as its customers were told.
    pub(crate) accepted: Arc<Mutex<Vec<(EventBody, u32)>>>,
    /// When the store went back.
    pub(crate) lost: Vec<Lost>,
    pub(crate) aim: Arc<Aim>,
    tasks: Tasks,
    agenda: BTreeMap<(Duration, u64), What>,
    planned: u64,
    senders: BTreeMap<usize, Sender>,
    still: BTreeSet<usize>,
    started: usize,
    held: u64,
    /// Until when all leases are renewed, one by one.
    awake: Duration,
}

/// A process that sends.
struct Sender {
    stop: Stop,
    /// Whether its clock agrees with the store's.
    agrees: Arc<AtomicBool>,
    owned: watch::Receiver<Owned>,
}

/// What is to happen.
#[derive(Clone, Copy, Debug)]
enum What {
    Event(u64, u32),
    Deed(Deed),
    Ends(usize),
    GoesOn(usize),
    ClockIsSet(usize),
    Mend,
    Stir,
}

impl World {
    pub(crate) fn new(plan: Plan, is_traced: bool) -> Self {
        let time = Time::default();
        let trace = Arc::new(Trace::new(time.clone(), is_traced));
        let aim = Arc::new(Aim::new(plan.seed, plan.faults.clone(), Arc::clone(&trace)));
        let start = Timestamp::from_unix(1_767_225_600).unwrap();
        let director: Arc<dyn Director> = Arc::<Aim>::clone(&aim);
        let store = Store::new(time.clone(), director, start, 16);
        for endpoint in &plan.endpoints {
            store.add_endpoint(endpoint.number, customers::endpoint(endpoint, start));
        }
        let net = Arc::new(Net::new(time.clone(), &plan, Arc::clone(&trace)));
        let mut world = Self {
            plan,
            time,
            store,
            net,
            trace,
            accepted: Arc::default(),
            lost: Vec::new(),
            aim,
            tasks: Tasks::default(),
            agenda: BTreeMap::new(),
            planned: 0,
            senders: BTreeMap::new(),
            still: BTreeSet::new(),
            started: 0,
            held: 0,
            awake: Duration::ZERO,
        };
        for _ in 0..world.plan.senders {
            world.start();
        }
        for (nth, (at, account)) in (1..).zip(world.plan.events.clone()) {
            world.plan(at, What::Event(nth, account));
        }
        for (at, deed) in world.plan.deeds.clone() {
            world.plan(at, What::Deed(deed));
        }
        world.plan(MENDED, What::Mend);
        for hour in 1..26 {
            world.plan(Duration::from_secs(hour * 3600), What::Stir);
        }
        world
    }

    /// Lets the day pass, and judges it.
    pub(crate) fn run(mut self) -> Verdict {
        let mut steps = 0;
        loop {
            while self.tasks.step() {
                steps += 1;
                if steps == STEPS {
                    self.net.blame(format!("the day is stuck at {:?}", self.time.now()));
                    return verdict::of(&self, steps);
                }
                while let Some(order) = self.aim.order() {
                    self.obey(order);
                }
                for _ in 0..self.aim.went_back() {
                    self.went_back();
                }
            }
            let next = self.time.next();
            if self.beats(next) {
                continue;
            }
            let due = self.agenda.first_key_value().map(|((at, _), _)| *at);
            match (due, next) {
                (Some(due), next) if next.is_none_or(|next| due <= next) => {
                    self.time.move_to(due);
                    let (_, what) = self.agenda.pop_first().unwrap();
                    self.does(what);
                }
                (_, Some(next)) if next <= END => _ = self.time.step(),
                _ => break,
            }
        }
        verdict::of(&self, steps)
    }

    /// Has leases be renewed, if that is next. While nothing else happens and nobody's lease ends, only the last
    /// renewal is made. After one that took longer than it is trusted, the next one is made.
    fn beats(&mut self, next: Option<Duration>) -> bool {
        let agenda = self.agenda.first_key_value().map(|((at, _), _)| *at);
        let next = next.into_iter().chain(agenda).min().unwrap_or(END).min(END);
        let (now, Some(beat)) = (self.time.now(), self.time.next_beat()) else { return false };
        if next <= beat {
            return false;
        }
        let mut at = beat;
        let trusts = |sender: &Sender| {
            let owned = sender.owned.borrow();
            owned.shards.is_empty() || now <= owned.until
        };
        if beat + 3 * BEFORE < next && self.awake < now && self.senders.values().all(trusts) {
            let mut tables = self.store.tables();
            if tables.is_shared(SHARDS, &self.live(), self.store.since_start()) {
                at = next - BEFORE;
                tables.renew_for(at - now);
            }
        }
        self.time.beat_at(at);
        true
    }

    fn plan(&mut self, at: Duration, what: What) {
        self.planned += 1;
        self.agenda.insert((at, self.planned), what);
    }

    fn later(&mut self, wait: Duration, what: What) {
        self.plan(self.time.now() + wait, what);
    }

    fn does(&mut self, what: What) {
        match what {
            What::Event(number, account) => self.accept(number, account),
            What::Deed(deed) => {
                self.trace.say(|| format!("deed {deed:?}"));
                self.deed(deed);
            }
            What::Ends(process) => self.kill(process),
            What::GoesOn(process) => {
                self.trace.say(|| format!("process {process} goes on"));
                self.still.remove(&process);
                self.tasks.go_on(process);
            }
            What::ClockIsSet(process) => self.agrees(process, true),
            What::Mend => self.mend(),
            What::Stir => self.store.nudge(),
        }
    }

    fn accept(&mut self, number: u64, account: u32) {
        let store = self.store.clone();
        self.accepts(account, async move {
            // A customer who is not answered asks again, with the same id.
            let event = |now| customers::event(number, account, now);
            Some(store.accept(account, event).await.ok()?.0)
        });
    }

    /// Has an event accepted, and notes it once its customer is told so.
    fn accepts(
        &self,
        account: u32,
        accepting: impl Future<Output = Option<EventBody>> + Send + 'static,
    ) {
        let accepted = Arc::clone(&self.accepted);
        self.tasks.spawner().spawn(0, async move {
            if let Some(event) = accepting.await {
                accepted.lock().unwrap().push((event, account));
            }
        });
    }

    fn deed(&mut self, deed: Deed) {
        match deed {
            Deed::LimitAll(per_second) => self.limit(LimitOf::All, per_second),
            Deed::LimitAccount(account, rate) => self.limit(LimitOf::Account(account), rate),
            Deed::LimitEndpoint(endpoint, rate) => self.limit(LimitOf::Endpoint(endpoint), rate),
            Deed::NoLimits => self.store.set_limits(Vec::new()),
            Deed::Hold(account, seconds) => self.hold(account, Duration::from_secs(seconds)),
            Deed::Abandon(endpoint) => self.abandon(endpoint),
            Deed::Start => self.start(),
            Deed::GoBack(commits) => {
                self.store.go_back(commits);
                self.went_back();
            }
            Deed::Kill(nth) | Deed::Still(nth, _) | Deed::Clock(nth, _) | Deed::Drain(nth) => {
                let live = self.live();
                let place = usize::try_from(nth).unwrap_or(usize::MAX) % live.len().max(1);
                if let Some(process) = live.into_iter().nth(place) {
                    self.deed_to(process, deed);
                }
            }
            deed => {
                let store = self.store.clone();
                self.tasks.spawner().spawn(0, customers::does(store, deed));
            }
        }
    }

    fn limit(&self, of: LimitOf, per_second: u32) {
        self.store.set_limits(vec![SetLimit { of, per_second }]);
    }

    fn deed_to(&mut self, process: usize, deed: Deed) {
        match deed {
            Deed::Kill(_) => self.kill(process),
            Deed::Still(_, seconds) => self.stop(process, Duration::from_secs(seconds)),
            Deed::Clock(_, seconds) => {
                self.agrees(process, false);
                self.later(Duration::from_secs(seconds), What::ClockIsSet(process));
            }
            _ => {
                self.senders[&process].stop.ask();
                self.later(GRACE, What::Ends(process));
            }
        }
    }

    /// Returns the next event of those that are accepted in a transaction that is open for long.
    fn held(&mut self, account: u32) -> impl FnOnce(Timestamp) -> EventBody + use<> {
        self.held += 1;
        let number = customers::HELD + self.held;
        move |now| customers::event(number, account, now)
    }

    fn abandon(&mut self, endpoint: u32) {
        let of = self.plan.endpoints.iter().find(|plan| plan.number == endpoint);
        let Some(account) = of.map(|plan| plan.account) else { return };
        let (store, event) = (self.store.clone(), self.held(account));
        self.accepts(account, async move {
            customers::abandon(&store, (endpoint, account), event).await.ok()
        });
    }

    /// Accepts an event in a transaction that is open for long.
    fn hold(&mut self, account: u32, wait: Duration) {
        let (store, time, event) = (self.store.clone(), self.time.clone(), self.held(account));
        self.accepts(account, async move {
            let mut change = store.change().await.ok()?;
            let (event, _) = change.accept(account, event).await.ok()?;
            time.sleep(wait).await;
            change.commit().await.ok()?;
            Some(event)
        });
    }

    fn start(&mut self) {
        self.started += 1;
        let (process, name) = (self.started, format!("sender-{}", self.started));
        let store = self.store.of(process);
        let agrees = Arc::new(AtomicBool::new(true));
        let (net, at) = (Arc::clone(&self.net), store.clone());
        let poster = Poster { net, store: at, process, agrees: Arc::clone(&agrees) };
        let with = (&self.time, &self.trace, &self.tasks.spawner());
        let (stop, owned) = sender::start(store, (process, name), poster, with);
        self.senders.insert(process, Sender { stop, agrees, owned });
    }

    fn agrees(&self, process: usize, agrees: bool) {
        if let Some(sender) = self.senders.get(&process) {
            self.trace.say(|| format!("clock of process {process} is right: {agrees}"));
            sender.agrees.store(agrees, Ordering::Relaxed);
        }
    }

    fn live(&self) -> BTreeSet<usize> {
        self.senders.keys().copied().filter(|process| !self.still.contains(process)).collect()
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Kill(process) => {
                self.kill(process);
                self.later(Duration::from_secs(2), What::Deed(Deed::Start));
            }
            Order::Still(process, wait) => self.stop(process, wait),
        }
    }

    fn kill(&mut self, process: usize) {
        if self.senders.remove(&process).is_some() {
            self.trace.say(|| format!("process {process} is killed"));
            self.tasks.kill(process);
            self.still.remove(&process);
        }
    }

    fn stop(&mut self, process: usize, wait: Duration) {
        if !self.senders.contains_key(&process) || !self.still.insert(process) {
            return;
        }
        self.trace.say(|| format!("process {process} stands still for {wait:?}"));
        self.tasks.stop(process);
        self.later(wait, What::GoesOn(process));
    }

    fn went_back(&mut self) {
        self.trace.say(|| "the store went back".to_owned());
        let now = self.store.now();
        self.net.went_back(now);
        self.awake = self.time.now() + AWAKE;
        // A process that has seen it by then looks again, as those that look all the time do.
        self.later(AWAKE, What::Stir);
        let span = Duration::from_secs(60);
        self.lost.push([now.saturating_sub(span), now.saturating_add(span)]);
    }

    fn mend(&mut self) {
        self.aim.end();
        self.store.set_limits(Vec::new());
        // One that is to end does.
        self.start();
        debug_assert!(LAST_EVENT < MENDED);
    }
}
