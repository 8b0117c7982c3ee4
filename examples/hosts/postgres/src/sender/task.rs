//! The task that has the planner: takes what is due, begins it in memory, sends it, and hears what
//! came of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{BeginError, DueDelivery, Outcome, Planner};
use http_body_util::Full;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::history::History;
use super::levers::{Rates, Valves};
use super::owner::{InHand, Owned};
use super::parking::Parking;
use super::poll::PendingRow;
use super::read::{Pending, Planned, Reader, ToBegin};
use super::settle::SentAttempt;
use super::shares::Shares;
use super::{DRAIN, Message};
use crate::clock::{self as machine, database as clock};
use crate::db::Database;
use crate::queue::{self, Key};
use host::log;
use host::post;
use host::scale::Scale;
use host::sending::{Load, Slot};
use host::shutdown::Shutdown;
use host::signed::Signed;
use host::watch::Watch;

/// The most deliveries that are read at once.
const BATCH: usize = 128;

/// The most deliveries in hand. With more, results wait for the database, and no attempt begins.
const IN_HAND: u32 = 4096;

/// How long to wait after the database did not respond.
const AFTER_ERROR: Duration = Duration::from_millis(200);

/// A delivery in this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownDelivery {
    shard: i16,
    account: i32,
    endpoint: u32,
    event_created_at: Timestamp,
    /// Whether it waits in the planner; else it is being read, sent or stored.
    is_planned: bool,
    /// Whether its number was found on another delivery since.
    is_replaced: bool,
    due: Timestamp,
    is_retry: bool,
    is_manual: bool,
    /// Whether it has waited for a lever, and may begin now.
    is_admitted: bool,
}

impl KnownDelivery {
    /// Tells whether a row with its number is of the same delivery: the number alone says nothing once the
    /// database went back.
    fn is_of(&self, endpoint: u32, event_created_at: Timestamp) -> bool {
        (self.endpoint, self.event_created_at) == (endpoint, event_created_at)
    }
}

/// The task that has the planner.
pub(super) struct SenderTask {
    pub(super) planner: Planner,
    pub(super) known: HashMap<u64, KnownDelivery>,
    /// What operators have set, and what waits for it.
    pub(super) levers: watch::Receiver<Rates>,
    pub(super) valves: Valves,
    pub(super) shares: Shares,
    pub(super) history: History,
    pub(super) in_hand: Arc<InHand>,
    pub(super) owned: watch::Receiver<Owned>,
    pub(super) sender: mpsc::UnboundedSender<Message>,
    pub(super) messages: mpsc::UnboundedReceiver<Message>,
    pub(super) ended: mpsc::UnboundedSender<SentAttempt>,
    /// The batches that are being read.
    pub(super) reading: usize,
    pub(super) attempts: JoinSet<()>,
    pub(super) parking: Parking,
    pub(super) database: Database,
    pub(super) reader: Arc<Reader>,
    pub(super) client: post::Client,
    pub(super) scale: Scale,
    pub(super) load: Load,
    pub(super) watch: Watch,
}

impl SenderTask {
    /// Sends until shutdown, and then waits for attempts in flight.
    pub(super) async fn run(mut self, stop: &Shutdown) {
        let mut messages = Vec::new();
        self.levers.mark_changed();
        loop {
            let now = clock::now();
            let opened = self.valves.open();
            self.plan_again(opened, true);
            self.plan(now);
            self.load.note(&self.planner, self.valves.len(), now);
            let next = self.next_look();
            tokio::select! {
                () = stop.requested() => break,
                Ok(()) = self.owned.changed() => self.let_go(),
                Ok(()) = self.levers.changed() => {
                    let waited = self.valves.set(&self.levers.borrow_and_update());
                    self.plan_again(waited, false);
                }
                () = at(self.valves.next()) => {}
                () = until(next) => {}
                _ = self.messages.recv_many(&mut messages, 1024) => {}
                Some(_) = self.attempts.join_next() => {}
            }
            while self.attempts.try_join_next().is_some() {}
            for message in messages.drain(..) {
                self.hear(message, clock::now(), true);
            }
        }
        // What is in flight goes on to its end; nothing begins.
        let _ = tokio::time::timeout(DRAIN, async {
            while !self.attempts.is_empty() {
                tokio::select! {
                    Some(_) = self.attempts.join_next() => {}
                    Some(message) = self.messages.recv() => self.hear(message, clock::now(), false),
                }
            }
        })
        .await;
        self.attempts.shutdown().await;
    }

    /// Takes what is due from the planner, and has it read.
    fn plan(&mut self, now: Timestamp) {
        while self.may_plan() {
            let (mut planned, mut created) = (Vec::new(), Vec::new());
            while planned.len() < BATCH
                && let Some((id, endpoint)) = self.planner.next(now)
            {
                match self.known.get_mut(&id) {
                    Some(known) if known.is_planned && known.endpoint == endpoint => {
                        let account = known.account.cast_unsigned();
                        if !known.is_admitted && !self.valves.admits(account, endpoint, id) {
                            self.planner.finished(endpoint, Outcome::Unsent, Duration::ZERO);
                            continue;
                        }
                        known.is_planned = false;
                        self.in_hand.add(known.shard);
                        planned.push((id, endpoint));
                        created.push(known.event_created_at);
                    }
                    // It was found twice and is under way, or its number is another delivery's.
                    known => {
                        let is_other = known.is_none_or(|known| known.endpoint != endpoint);
                        self.planner.finished(endpoint, Outcome::Unsent, Duration::ZERO);
                        if is_other {
                            self.end_share(endpoint, id);
                        }
                    }
                }
            }
            if planned.is_empty() {
                return;
            }
            self.reading = self.reading.saturating_add(1);
            let ids: Vec<i64> = planned.iter().map(|(id, _)| id.cast_signed()).collect();
            let mut endpoints: Vec<i32> =
                planned.iter().map(|(_, endpoint)| endpoint.cast_signed()).collect();
            endpoints.sort_unstable();
            endpoints.dedup();
            let (reader, sender) = (Arc::clone(&self.reader), self.sender.clone());
            let reading = async move {
                let batch = Planned { ids: &ids, created: &created, endpoints: &endpoints };
                let read = reader.read(batch, clock::now()).await;
                if read.is_err() {
                    sleep(AFTER_ERROR).await;
                }
                let _ = sender.send(Message::Read(planned, read));
            };
            tokio::spawn(self.watch.without_panic("reading of deliveries", reading));
        }
    }

    /// Returns to the planner what has waited for a lever.
    fn plan_again(&mut self, waited: Vec<(u64, u32)>, is_admitted: bool) {
        for (id, endpoint) in waited {
            if let Some(known) = self.known.get_mut(&id)
                && known.is_planned
                && known.endpoint == endpoint
            {
                known.is_admitted = is_admitted;
                let known = *known;
                self.add(id, endpoint, known);
            }
        }
    }

    fn may_plan(&self) -> bool {
        self.reading < 4 && self.in_hand.all() < IN_HAND && self.owned.borrow().is_valid()
    }

    /// Returns when to plan next, if no message comes before.
    fn next_look(&self) -> Option<Timestamp> {
        self.planner.next_due().filter(|_| self.may_plan())
    }

    fn hear(&mut self, message: Message, now: Timestamp, goes_on: bool) {
        match message {
            Message::Found(found) => {
                for each in found {
                    self.find(each, now);
                }
            }
            Message::Forget => self.forget(),
            Message::Read(planned, read) => {
                self.reading = self.reading.saturating_sub(1);
                log::tried("deliveries are not read", &read);
                match read {
                    Ok(mut read) => {
                        for (id, endpoint) in planned {
                            match goes_on {
                                true => self.begin(id, endpoint, &mut read, now),
                                false => self.put_back(id, endpoint, None),
                            }
                        }
                    }
                    Err(_) => {
                        for (id, endpoint) in planned {
                            self.put_back(id, endpoint, Some(now));
                        }
                    }
                }
            }
            Message::Finished { delivery, endpoint, outcome, took } => {
                self.planner.finished(endpoint, outcome, took);
                self.end_share(endpoint, delivery);
            }
            Message::Stored { stored, disabled } => {
                for each in stored {
                    let (id, endpoint) = (each.key.id.cast_unsigned(), each.key.endpoint);
                    if let Some(known) = self.known.get_mut(&id) {
                        known.is_retry = true;
                    }
                    self.release(id, endpoint.cast_unsigned(), each.again);
                    if disabled.contains(&endpoint) {
                        self.forget_endpoint(endpoint.cast_unsigned());
                        self.park(endpoint);
                    }
                }
            }
        }
    }

    /// Holds a delivery that is pending, if its shard is owned.
    fn find(&mut self, found: PendingRow, now: Timestamp) {
        let Some(due) = found.delivery.due(now) else { return };
        if !self.owned.borrow().shards.contains_key(&found.shard) {
            return;
        }
        let (id, endpoint) = (found.id.cast_unsigned(), found.endpoint.cast_unsigned());
        let is_manual = found.delivery.is_manual();
        let is_retry = found.delivery.attempts() > 0 && !is_manual;
        let event_created_at = found.delivery.event_created_at();
        match self.known.get_mut(&id) {
            Some(known) if !known.is_of(endpoint, event_created_at) => {
                if !known.is_replaced {
                    known.is_replaced = true;
                    self.history.went_back(format_args!(
                        "delivery {id} was of endpoint {} and of {}, and is of endpoint {endpoint} \
                         and of {event_created_at}",
                        known.endpoint, known.event_created_at
                    ));
                }
                return;
            }
            // It is under way: what comes of it says when it is due next.
            Some(known) if !known.is_planned => return,
            // As it was planned, as nearly always; or somebody wants it earlier.
            Some(known) if known.due <= due => return,
            _ => {}
        }
        let PendingRow { shard, account, .. } = found;
        let known = KnownDelivery {
            shard,
            account,
            endpoint,
            event_created_at,
            is_planned: true,
            is_replaced: false,
            due,
            is_retry,
            is_manual,
            is_admitted: false,
        };
        self.known.insert(id, known);
        self.add(id, endpoint, known);
    }

    fn add(&mut self, delivery: u64, endpoint: u32, known: KnownDelivery) {
        let KnownDelivery { account, due, is_retry, is_manual, .. } = known;
        if is_manual && !self.shares.admits(endpoint, delivery) {
            return;
        }
        let account = account.cast_unsigned();
        self.planner.add(DueDelivery { delivery, endpoint, account, due, is_retry });
    }

    /// Gives the share of a redelivery to the next one that waits for it.
    fn end_share(&mut self, endpoint: u32, delivery: u64) {
        let known = &self.known;
        let is_to_be_sent =
            |id| known.get(&id).is_some_and(|known| known.is_planned && known.endpoint == endpoint);
        let next = self.shares.end(endpoint, delivery, is_to_be_sent);
        if let Some((next, known)) = next.and_then(|id| Some((id, *self.known.get(&id)?))) {
            self.add(next, endpoint, known);
        }
    }

    /// Begins an attempt in memory and sends it.
    fn begin(&mut self, id: u64, endpoint: u32, read: &mut ToBegin, now: Timestamp) {
        let found = read.pending.remove(&id.cast_signed());
        let receiver = read.receivers.get(&endpoint.cast_signed());
        let known = self.known.get(&id).copied();
        let (Some(found), Some(receiver), Some(known)) = (found, receiver, known) else {
            // It has ended, or was parked or erased. What this process cannot read stays.
            return self.put_back(id, endpoint, None);
        };
        let Pending { delivery, body, endpoint: of, traceparent } = found;
        let event_created_at = delivery.event_created_at();
        if of != endpoint.cast_signed() || !known.is_of(endpoint, event_created_at) {
            self.history.went_back(format_args!(
                "delivery {id} was planned for endpoint {endpoint} with an event of {}, and is of \
                 endpoint {of} and of {event_created_at}",
                known.event_created_at
            ));
            return self.put_back(id, endpoint, None);
        }
        if !self.owned.borrow().has(known.shard) {
            // Of a shard that is still this sender's, it waits until the lease is renewed.
            return self.put_back(id, endpoint, Some(now));
        }
        let mut row = delivery;
        let attempt = match row.begin(&receiver.health, now) {
            Ok(attempt) => attempt,
            Err(BeginError::Parked) => {
                self.put_back(id, endpoint, None);
                // Of an endpoint that was enabled since, the others may be sent.
                if receiver.health.disabled().is_some() {
                    self.forget_endpoint(endpoint);
                }
                return self.park(endpoint.cast_signed());
            }
            Err(BeginError::Early { at, .. }) => return self.put_back(id, endpoint, Some(at)),
            Err(BeginError::Leased { until, .. } | BeginError::Disabled { until, .. }) => {
                return self.put_back(id, endpoint, Some(until));
            }
            Err(_) => return self.put_back(id, endpoint, None),
        };
        let key = Key { id: id.cast_signed(), endpoint: endpoint.cast_signed(), event_created_at };
        let opened = &receiver.opened;
        let names = Arc::clone(&opened.names);
        let (of, event) = (Arc::clone(&names), body.id().clone());
        let event_type = body.event_type().clone();
        let line = move |sent: &post::Sent| {
            sent.line(attempt.number().into())
                .with("account", of.account.as_str())
                .with("endpoint", of.endpoint.as_str())
                .with("event", event.as_str())
                .with("delivery", queue::delivery_text(key.endpoint, key.id))
                .with("type", event_type.as_str())
                .with("traceparent", traceparent)
        };
        let Some(destination) = &opened.destination else {
            // This sender may not call it, nor does waiting change that.
            let sent = post::Sent::without_answer(Outcome::Forbidden, now);
            line(&sent).write();
            let _ = self.ended.send(SentAttempt { key, names, row, attempt, at: now, sent });
            return self.planner.finished(endpoint, Outcome::Forbidden, Duration::ZERO);
        };
        let patience = self.scale.timeout(attempt.deadline().since(attempt.began_at()));
        // What is stored and planned is by the database's clock; receivers compare with their own.
        let machine_now = machine::now();
        let Ok(request) = attempt.request(destination, &body, machine_now) else {
            return self.put_back(id, endpoint, None);
        };
        let signed = Signed::new(&opened.signer, machine_now);
        let begun = Instant::now();
        let request = request.map(Full::from);
        let destination = Arc::clone(destination);
        let (client, ended) = (self.client.clone(), self.ended.clone());
        let messages = self.sender.clone();
        let slot = Slot::new(move |outcome, took| {
            let _ = messages.send(Message::Finished { delivery: id, endpoint, outcome, took });
        });
        let sending = async move {
            let waited = begun.elapsed();
            let target = destination.target();
            let sent = client.send(target, request, patience, &slot).await;
            let sent = post::Sent { signed: Some(signed), ..sent };
            let (outcome, took) = (sent.outcome, sent.took);
            let at = now.saturating_add(waited.saturating_add(took)).floor_to_micros();
            line(&sent).with("host", post::host(target)).write();
            let _ = ended.send(SentAttempt { key, names, row, attempt, at, sent });
            slot.finish(outcome, took);
        };
        self.attempts.spawn(self.watch.without_panic("an attempt", sending));
    }

    /// Ends what is in hand of a delivery that was planned and not begun.
    fn put_back(&mut self, id: u64, endpoint: u32, due: Option<Timestamp>) {
        self.planner.finished(endpoint, Outcome::Unsent, Duration::ZERO);
        self.release(id, endpoint, due);
    }

    /// Ends what is in hand of a delivery: it waits until it is due, or is forgotten.
    fn release(&mut self, id: u64, endpoint: u32, due: Option<Timestamp>) {
        let Some(known) = self.known.get_mut(&id) else { return };
        self.in_hand.remove(known.shard);
        if known.is_replaced {
            self.history.read_again();
        }
        match due {
            Some(due)
                if !known.is_replaced && self.owned.borrow().shards.contains_key(&known.shard) =>
            {
                (known.is_planned, known.due, known.is_admitted) = (true, due, false);
                let known = *known;
                self.add(id, endpoint, known);
            }
            _ => {
                self.known.remove(&id);
                self.end_share(endpoint, id);
            }
        }
    }

    /// Forgets all that is planned: it is to be found again.
    fn forget(&mut self) {
        self.known.retain(|_, known| !known.is_planned);
        self.planner.retain(|_, _| false);
        self.valves.retain(|_, _| false);
        self.shares.retain(|id| self.known.contains_key(&id));
    }

    /// Drops the deliveries of shards that this sender no longer owns.
    fn let_go(&mut self) {
        let owned = self.owned.borrow_and_update().clone();
        let known = &mut self.known;
        let before = known.len();
        known.retain(|_, known| !known.is_planned || owned.shards.contains_key(&known.shard));
        if known.len() < before {
            self.planner.retain(|id, _| known.contains_key(&id));
            self.valves.retain(|id, _| known.contains_key(&id));
            self.shares.retain(|id| known.contains_key(&id));
        }
    }

    /// Forgets what is planned of an endpoint that is disabled.
    fn forget_endpoint(&mut self, endpoint: u32) {
        let known = &mut self.known;
        // What is in hand may have been planned a second time, for an earlier time: it is known until it is stored.
        let mut forget = |id: u64| {
            if known.get(&id).is_some_and(|known| known.is_planned) {
                known.remove(&id);
            }
        };
        let mut stays = |id: u64, of: u32| {
            let stays = of != endpoint;
            if !stays {
                forget(id);
            }
            stays
        };
        self.planner.retain(&mut stays);
        self.valves.retain(&mut stays);
        self.shares.forget(endpoint).into_iter().for_each(forget);
        self.shares.retain(|id| known.contains_key(&id));
    }

    /// Parks what is pending of an endpoint that is disabled, or was enabled since.
    fn park(&self, endpoint: i32) {
        let database = self.database.clone();
        let park = move || {
            let database = database.clone();
            async move { queue::park(&database, endpoint, clock::now()).await }
        };
        if let Some(parking) = self.parking.of(endpoint, park) {
            tokio::spawn(self.watch.without_panic("parking of deliveries", parking));
        }
    }
}

async fn until(due: Option<Timestamp>) {
    match due {
        // A millisecond more than the wait, for timers count in whole ones.
        Some(due) => sleep(due.since(clock::now()).saturating_add(Duration::from_millis(1))).await,
        // Not for ever: a lease may be valid again.
        None => sleep(AFTER_ERROR).await,
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
