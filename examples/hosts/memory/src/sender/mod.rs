//! The webhook sender: takes due deliveries in the planner's order, sends them, stores the outcomes.
//!
//! One task holds the planner; each attempt is a task of its own. The order of storing and sending
//! is the one `call_assistant::webhook::sender` documents, its steps are functions of the store.

mod attempt;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{DueDelivery, Outcome, Planner};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::Instant;

use attempt::send;

use crate::faults::Faults;
use crate::store::{Begun, Store, Tables, ToSend};
use host::clock;
use host::post;
use host::rows::LoadRow;
use host::scale::Scale;
use host::sending::{LIMITS, Load, Slot, given_up, until};
use host::shutdown::Shutdown;

/// How often what is older than thirty days is forgotten, and owners are reminded.
const HOUSEKEEPING: Duration = Duration::from_secs(60);

/// How long recoveries wait from one step to the next: so what is new meets a process with time left.
const RECOVERIES: Duration = Duration::from_millis(10);

/// How fast to send, as the command line has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    pub scale: Scale,
    /// The most attempts per second and endpoint; 0 is no limit.
    pub per_second: u32,
}

/// The sender's inbox for deliveries to send. Clones share it.
#[derive(Clone, Debug)]
pub struct Outbox(UnboundedSender<Message>, Load);

/// A message to the planner's task. There are never more messages than deliveries in the store.
#[derive(Debug)]
enum Message {
    /// These are stored as accepted.
    Accepted(Vec<ToSend>),
    /// An attempt of this delivery is stored as finished, and what is to be sent again.
    Stored(u64, Option<ToSend>),
    /// Nothing of an attempt of this endpoint is left, no thread that looks up its name either.
    Finished { endpoint: u32, outcome: Outcome, took: Duration },
    /// The clock is to be moved to this instant, by way of all that is due before.
    Advance(Advance),
}

/// A move of the clock under way.
#[derive(Debug)]
struct Advance {
    to: Timestamp,
    /// How far the clock was ahead when the move was asked for.
    from: Duration,
    stops: u64,
    done: oneshot::Sender<u64>,
}

/// The sender, before it starts.
#[derive(Debug)]
pub struct Sender {
    messages: UnboundedReceiver<Message>,
    outbox: Outbox,
    planner: Planner,
    /// Deliveries with an attempt that is not stored as finished.
    in_hand: BTreeSet<u64>,
    /// What the planner counts as in flight, by endpoint.
    in_flight: HashMap<u32, u32>,
    store: Arc<Store>,
    client: post::Client,
    pace: Pace,
    faults: Faults,
    advance: Option<Advance>,
}

impl Outbox {
    /// Tells the sender of deliveries that are stored. It is there until the process ends, and
    /// finds what it was not told of in the store when it starts again.
    pub fn send(&self, accepted: Vec<ToSend>) {
        let _ = self.0.send(Message::Accepted(accepted));
    }

    /// Returns what the sender has.
    pub fn load(&self) -> LoadRow {
        self.1.row()
    }

    /// Moves the clock. It stops at every due time on the way, and goes on when the attempts made
    /// then have ended. Returns how often it stopped; `None` if a later move has taken its place, or an
    /// earlier one went further.
    pub async fn advance(&self, to: Timestamp) -> Option<u64> {
        let (done, moved) = oneshot::channel();
        let _ = self.0.send(Message::Advance(Advance { to, from: clock::ahead(), stops: 0, done }));
        moved.await.ok()
    }
}

impl Sender {
    /// Creates a sender of what is pending in a store by now. It has to be told of what comes later.
    pub fn new(store: Arc<Store>, client: post::Client, pace: Pace, faults: Faults) -> Self {
        let (sender, messages) = unbounded_channel();
        let mut sender = Self {
            messages,
            outbox: Outbox(sender, Load::default()),
            planner: Planner::new(LIMITS),
            in_hand: BTreeSet::new(),
            in_flight: HashMap::new(),
            store,
            client,
            pace,
            faults,
            advance: None,
        };
        sender.plan(clock::now());
        sender
    }

    /// Plans all that is pending.
    fn plan(&mut self, now: Timestamp) {
        let tables = self.store.lock();
        let pending = tables.pending(now).map(|each| due(&tables, each));
        self.planner = Planner::rebuild(LIMITS, pending).with_rate(self.pace.per_second);
        for (endpoint, count) in &self.in_flight {
            let account = tables.account_of(*endpoint);
            (0..*count).for_each(|_| self.planner.began(*endpoint, account));
        }
    }

    /// Returns the inbox for deliveries to send.
    pub fn outbox(&self) -> Outbox {
        self.outbox.clone()
    }

    /// Sends until shutdown. Nothing begins then, and attempts in flight have a few
    /// seconds to end; those that have not are given up, uncounted: the store has them as not sent.
    pub async fn run(mut self, shutdown: Shutdown) {
        let mut housekeeping = tokio::time::interval(HOUSEKEEPING);
        let mut step_at = Instant::now();
        while !shutdown.is_requested() {
            let now = self.look_at_clock();
            if step_at <= Instant::now() {
                let recovered = self.store.lock().step_recoveries(now);
                self.add(recovered);
                step_at = Instant::now().checked_add(RECOVERIES).unwrap_or(step_at);
            }
            let recovering = self.store.lock().is_recovering();
            self.begin_all(now, &shutdown);
            self.outbox.1.note(&self.planner, 0, now);
            if self.moves_clock() {
                continue;
            }
            let due = self.planner.next_due();
            tokio::select! {
                () = shutdown.requested() => {}
                () = until(due.unwrap_or(Timestamp::MAX)), if due.is_some() => {}
                () = tokio::time::sleep_until(step_at), if recovering => {}
                _ = housekeeping.tick() => self.store.lock().keep_house(clock::now()),
                Some(message) = self.messages.recv() => self.hear(message),
            }
        }
        while !self.in_hand.is_empty() {
            let Some(message) = self.messages.recv().await else { break };
            self.hear(message);
        }
    }

    /// Returns the time. What is pending is planned anew if somebody has set the clock.
    fn look_at_clock(&mut self) -> Timestamp {
        let (mut tables, now) = self.store.write();
        let was_set = tables.was_clock_set();
        drop(tables);
        if was_set {
            self.plan(now);
        }
        now
    }

    /// Takes the next step of a move of the clock, if one is under way and nothing is in flight.
    /// True if it moved.
    fn moves_clock(&mut self) -> bool {
        let Some(advance) = self.advance.as_mut().filter(|_| self.in_hand.is_empty()) else {
            return false;
        };
        let next = self.planner.next_due().filter(|due| *due <= advance.to);
        if let Some(due) = next {
            if due <= clock::now() {
                return false; // it waits for a slot, whose end is a message
            }
            advance.stops = advance.stops.saturating_add(1);
            clock::move_to(due);
            return true;
        }
        clock::move_to(advance.to);
        self.store.lock().keep_house(clock::now());
        if let Some(Advance { stops, done, .. }) = self.advance.take() {
            let _ = done.send(stops);
        }
        true
    }

    /// Begins all that may be sent now.
    fn begin_all(&mut self, now: Timestamp, shutdown: &Shutdown) {
        while let Some((delivery, endpoint)) = self.planner.next(now) {
            // One that is in hand is planned again when its attempt is stored.
            let begun = match self.in_hand.contains(&delivery) {
                true => Err(None),
                false => self.store.lock().begin(delivery, now),
            };
            match begun {
                Ok(begun) => {
                    self.in_hand.insert(delivery);
                    let count = self.in_flight.entry(endpoint).or_default();
                    *count = count.saturating_add(1);
                    self.attempt(delivery, endpoint, begun, shutdown);
                }
                Err(later) => {
                    self.planner.finished(endpoint, Outcome::Unsent, Duration::ZERO);
                    self.add(later);
                }
            }
        }
    }

    fn hear(&mut self, message: Message) {
        let added = match message {
            Message::Advance(advance) => {
                // Of two at a time, the later one counts. No clock goes back.
                if clock::ahead() == advance.from || clock::now() <= advance.to {
                    self.advance = Some(advance);
                }
                Vec::new()
            }
            Message::Accepted(accepted) => accepted,
            Message::Stored(delivery, again) => {
                self.in_hand.remove(&delivery);
                again.into_iter().collect()
            }
            Message::Finished { endpoint, outcome, took } => {
                self.planner.finished(endpoint, outcome, took);
                if let Some(count) = self.in_flight.get_mut(&endpoint) {
                    *count = count.saturating_sub(1);
                }
                self.in_flight.retain(|_, count| *count > 0);
                Vec::new()
            }
        };
        self.add(added);
    }

    fn add(&mut self, added: impl IntoIterator<Item = ToSend>) {
        for each in added {
            let due = due(&self.store.lock(), each);
            self.planner.add(due);
        }
    }

    fn attempt(&self, delivery: u64, endpoint: u32, begun: Begun, shutdown: &Shutdown) {
        let (store, outbox, scale) =
            (Arc::clone(&self.store), self.outbox.clone(), self.pace.scale);
        let (client, shutdown) = (self.client.clone(), shutdown.clone());
        let faults = self.faults.clone();
        let told = outbox.clone();
        let slot = Slot::new(move |outcome, took| {
            let _ = told.0.send(Message::Finished { endpoint, outcome, took });
        });
        tokio::spawn(async move {
            let began = Instant::now();
            let sent = tokio::select! {
                sent = send(&begun, endpoint, &client, scale, &slot, &faults) => sent,
                () = given_up(&shutdown) => post::Sent::stopped(began),
            };
            let again = store.write().0.finish(delivery, &begun, &sent, &scale.schedule());
            store.lock().count_alerts();
            sent.line(begun.attempt.number().into())
                .with("account", begun.body.account_id().as_str())
                .with("endpoint", begun.endpoint.as_str())
                .with("event", begun.body.id().as_str())
                .with("delivery", begun.delivery.as_str())
                .with("type", begun.body.event_type().as_str())
                .with("host", post::host(begun.destination.target()))
                .write();
            let _ = outbox.0.send(Message::Stored(delivery, again));
            slot.finish(sent.outcome, sent.took);
        });
    }
}

/// Returns a delivery as the planner takes it.
fn due(tables: &Tables, each: ToSend) -> DueDelivery {
    let ToSend { delivery, endpoint, due, is_retry } = each;
    DueDelivery { delivery, endpoint, account: tables.account_of(endpoint), due, is_retry }
}
