//! A day in the life of a sender, by a script and virtual time: what it asks of a store, as text.
//!
//! 200 events go to 20 endpoints of four accounts, whose receivers have all [manners](script). Endpoints are
//! disabled and enabled again, and operators set limits. The sender is the production code but for its shell, which
//! here does one thing at a time. So two stores that keep the port's promises are asked the same, in the same order.

mod recorded;
mod script;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{RetrySchedule, SenderMetrics};
use host::post::Sent;
use host::post::signed::Signed;
use host::rows::{Change as _, Changes as _, Key, Lock, Rows, SetLimit, Shards, Writes};
use host::sender::{
    Begun, Clock, Command, Core, Ended, Event, History, Keeper, Moment, Notes, Owned, count_missed,
    park, settle,
};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use self::recorded::Recorded;
use self::script::{Answer, Deed};
use crate::event::ping;
use crate::store::Time;

/// A store of a host.
pub trait Stage {
    type Rows: Rows;

    fn rows(&self) -> Self::Rows;

    /// Returns all shards.
    fn shards(&self) -> Shards;

    /// Accepts an event for each endpoint of its account.
    fn accept(&self, event: &EventBody, now: Timestamp) -> impl Future<Output = ()>;

    /// Returns the number of an endpoint.
    fn number(&self, endpoint: &str) -> impl Future<Output = u32>;

    /// Has these limits set and no other. Returns those that the store does not keep itself.
    fn limit(&self, limits: &[Lever]) -> impl Future<Output = Vec<SetLimit>>;
}

/// A limit as an operator sets it: of an account or of an endpoint, or else of all.
#[derive(Clone, Copy, Debug)]
pub struct Lever {
    pub account: Option<&'static str>,
    pub endpoint: Option<&'static str>,
    pub per_second: u32,
}

/// Returns the accounts of the day, as a file for `--data` has them.
pub fn data() -> Value {
    script::data()
}

/// Lets the day pass, and returns what the store was asked, with what it answered.
pub async fn passes(stage: &impl Stage, start: Timestamp) -> Vec<String> {
    let time = Time::default();
    let rows = Recorded::new(stage.rows(), time.clone());
    let owned = Owned { shards: stage.shards(), until: Duration::MAX };
    let (inbox, events) = mpsc::unbounded_channel();
    let clock = Watch { time: time.clone(), start, looks: false };
    let keeper = Keeper {
        rows: rows.clone(),
        clock,
        notes: Uncounted,
        owned: watch::channel(owned.clone()).1,
        history: History::default(),
        inbox,
    };
    let looking = Keeper { clock: Watch { looks: true, ..keeper.clock.clone() }, ..keeper.clone() };
    let mut loops: [Pin<Box<dyn Future<Output = ()>>>; 3] = [
        Box::pin(keeper.clone().news()),
        Box::pin(looking.clone().recoveries()),
        Box::pin(looking.reminders()),
    ];
    let mut core = Core::new(0);
    core.hear(Event::Owned(owned), keeper.clock.at(), &mut VecDeque::new());
    let mut sender =
        Sender { keeper, core, events, posts: BTreeMap::new(), asked: BTreeMap::new() };
    let mut script = script::deeds();
    loop {
        for each in &mut loops {
            // One after the other, each until it waits for time to pass.
            poll_fn(|context| match each.as_mut().poll(context) {
                Poll::Pending if rows.tape.is_busy() => Poll::Pending,
                _ => Poll::Ready(()),
            })
            .await;
        }
        sender.turn().await;
        let deed = script.first_key_value().map(|((at, _), _)| *at);
        let wait = sender.core.wait(sender.keeper.clock.at());
        // A microsecond more, for what is planned is rounded to one.
        let due = wait.map(|wait| time.now() + wait + Duration::from_micros(1));
        let next = [deed, sender.posts.keys().next().map(|(at, _)| *at), due, time.next()];
        let Some(at) = next.into_iter().flatten().min() else { break };
        time.move_to(at);
        while let Some(entry) = script.first_entry().filter(|deed| deed.key().0 <= at) {
            does(stage, &rows, entry.remove(), start.saturating_add(at)).await;
        }
        sender.answered(at);
        while time.next().is_some_and(|next| next <= at) {
            time.step();
        }
    }
    rows.tape.lines()
}

/// Does a deed of a customer, an owner or an operator.
async fn does<S: Stage>(stage: &S, rows: &Recorded<S::Rows>, deed: Deed, now: Timestamp) {
    match deed {
        Deed::Accept(number, account) => {
            stage.accept(&ping(&format!("evt_{number}"), account, now), now).await;
            rows.tape.tell();
        }
        Deed::Limit(limits) => {
            rows.tape.limit(stage.limit(&limits).await);
        }
        Deed::Pause(endpoint) | Deed::Enable(endpoint) => {
            let number = stage.number(endpoint).await;
            let mut change = rows.change().await.unwrap();
            let mut health = change.endpoints(&[number], Lock::Yes).await.unwrap()[&number];
            match deed {
                Deed::Pause(_) => drop(health.pause(now)),
                _ => drop(health.enable(now)),
            }
            let endpoints = [(number, health)];
            let writes = Writes { endpoints: &endpoints, ..Writes::at(now) };
            change.write(&writes).await.unwrap();
            change.commit().await.unwrap();
        }
        Deed::Park(endpoint) => {
            park(rows, stage.number(endpoint).await, now).await.unwrap();
        }
    }
}

/// A sender, but for its loops.
struct Sender<R> {
    keeper: Keeper<R, Watch, Uncounted>,
    core: Core,
    events: mpsc::UnboundedReceiver<Event>,
    /// What is on its way, by when it is answered.
    posts: BTreeMap<(Duration, usize), (Begun, Answer)>,
    /// How often each endpoint was asked.
    asked: BTreeMap<String, usize>,
}

impl<R: Rows> Sender<R> {
    /// Does all that is to be done at this instant.
    async fn turn(&mut self) {
        let (at, mut commands) = (self.keeper.clock.at(), VecDeque::new());
        while let Ok(event) = self.events.try_recv() {
            self.core.hear(event, at, &mut commands);
        }
        while let Some(command) = commands.pop_front().or_else(|| self.core.next(at)) {
            if let Some(event) = self.carried_out(command).await {
                self.core.hear(event, at, &mut commands);
            }
        }
    }

    async fn carried_out(&mut self, command: Command) -> Option<Event> {
        let (rows, now) = (&self.keeper.rows, self.keeper.clock.at().now);
        Some(match command {
            Command::Read(planned) => {
                let keys: Vec<Key> = planned.iter().map(Key::of_planned).collect();
                Event::Read(planned, rows.to_begin(&keys, now).await)
            }
            Command::Post(begun) => {
                let endpoint = begun.opened.names.endpoint.clone();
                let nth = self.asked.entry(endpoint.clone()).or_default();
                let answer = script::answer(&endpoint, *nth, begun.at.steady);
                *nth += 1;
                let at = begun.at.steady + answer.took;
                self.posts.insert((at, self.asked.values().sum()), (*begun, answer));
                return None;
            }
            Command::Store(batch, how) => {
                let settled = settle(rows, RetrySchedule::default(), &batch, how, now).await;
                Event::Stored(batch, how, Box::new(settled))
            }
            Command::Park(endpoint) => Event::Parked(endpoint, park(rows, endpoint, now).await),
            Command::CountMissed(health, opened) => {
                count_missed(rows, &health, &opened.names, now).await.unwrap();
                return None;
            }
            Command::LookAgain(why) => panic!("nothing is lost on this day: {why:?}"),
        })
    }

    /// Hears what is answered by then.
    fn answered(&mut self, at: Duration) {
        while let Some(entry) = self.posts.first_entry().filter(|post| post.key().0 <= at) {
            let (begun, answer) = entry.remove();
            let Begun { key, row, attempt, opened, .. } = begun;
            let signed = Signed::new(&opened.signer, begun.at.now);
            let sent = Sent { signed: Some(signed), ..answer.sent(begun.at.now) };
            let (outcome, took, endpoint) = (sent.outcome, sent.took, key.endpoint);
            let ended = Ended { key, row, attempt, opened, at: sent.at, sent };
            for event in [Event::Ended(Box::new(ended)), Event::Freed { endpoint, outcome, took }] {
                self.keeper.inbox.send(event).unwrap();
            }
        }
    }
}

/// The clock of the day.
#[derive(Clone, Debug)]
struct Watch {
    time: Time,
    start: Timestamp,
    /// Whether it is a loop's that looks whether there is something to do.
    looks: bool,
}

impl Clock for Watch {
    fn at(&self) -> Moment {
        Moment { now: self.machine(), steady: self.time.now(), is_true: true }
    }

    fn machine(&self) -> Timestamp {
        self.start.saturating_add(self.time.now())
    }

    async fn sleep(&self, wait: Duration) {
        match self.looks {
            true => self.time.tick(wait).await,
            false => self.time.sleep(wait).await,
        }
    }
}

/// Nobody looks at the counts.
#[derive(Clone, Copy, Debug)]
struct Uncounted;

impl Notes for Uncounted {
    fn count(&self, _: impl FnOnce(&mut SenderMetrics)) {}

    fn tried<T>(&self, of: &'static str, done: &Result<T, impl Display>) {
        if let Err(error) = done {
            panic!("{of}: {error}");
        }
    }
}
