//! The webhook sender: takes what is due in the planner's order, sends it, stores what came of it.
//!
//! One task holds the planner; each attempt is a task of its own. The order of storing and sending
//! is the one `call_assistant::webhook::sender` documents, its steps are functions of the store.

mod slot;

use std::borrow::Cow;
use std::sync::Arc;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{Limits, Outcome, Planner};
use call_assistant::webhook::{Signer, SigningSecret};
use http_body_util::Full;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use slot::Slot;

use crate::host::post::{self, Trust};
use crate::host::scale::Scale;
use crate::sandbox::{DeliveryFault, Faults};
use crate::store::{Begun, Store, ToSend};
use crate::support::shutdown::Shutdown;
use crate::support::{clock, log, random};

/// At once. Two hundred endpoints that fall silent together, and half as much again for second
/// attempts, leave room for all others.
const LIMITS: Limits = Limits { overall: 448, per_endpoint: 8 };

/// How often what is older than thirty days is forgotten.
const HOUSEKEEPING: std::time::Duration = std::time::Duration::from_secs(60);

/// Twice the tolerance of a receiver.
const TEN_MINUTES: std::time::Duration = std::time::Duration::from_secs(600);

/// Where to hand in what is to be sent. Clone it freely.
#[derive(Clone, Debug)]
pub(crate) struct Outbox(UnboundedSender<Message>);

/// What the planner's task is told. There are never more messages than deliveries in the store.
#[derive(Debug)]
enum Message {
    /// These are stored as accepted.
    Accepted(Vec<ToSend>),
    /// An attempt is stored as finished, and what is to be sent again.
    Stored(Option<ToSend>),
    /// Nothing of an attempt of this endpoint is left, no thread that looks up its name either.
    Finished { endpoint: u32, outcome: Outcome },
    /// The clock is to be moved to this instant, by way of all that is due before.
    Advance(Advance),
}

/// A move of the clock under way.
#[derive(Debug)]
struct Advance {
    to: Timestamp,
    stops: u64,
    done: oneshot::Sender<u64>,
}

/// The sender, before it starts.
#[derive(Debug)]
pub(crate) struct Sender {
    messages: UnboundedReceiver<Message>,
    outbox: Outbox,
    planner: Planner,
    /// Attempts that are not stored as finished.
    running: usize,
    store: Arc<Store>,
    trust: Trust,
    scale: Scale,
    faults: Faults,
    advance: Option<Advance>,
}

impl Outbox {
    /// Tells the sender of deliveries that are stored. It is there until the process ends, and
    /// finds what it was not told of in the store when it starts again.
    pub(crate) fn send(&self, accepted: Vec<ToSend>) {
        let _ = self.0.send(Message::Accepted(accepted));
    }

    /// Moves the clock. It stops at every due time on the way, and goes on when the attempts made
    /// then have ended. Returns how often it stopped.
    pub(crate) async fn advance(&self, to: Timestamp) -> u64 {
        let (done, moved) = oneshot::channel();
        let _ = self.0.send(Message::Advance(Advance { to, stops: 0, done }));
        moved.await.unwrap_or(0)
    }
}

impl Sender {
    /// A sender of what is pending in a store by now. It has to be told of what comes later.
    pub(crate) fn new(store: Arc<Store>, trust: Trust, scale: Scale, faults: Faults) -> Self {
        let (sender, messages) = unbounded_channel();
        let planner = Planner::rebuild(LIMITS, store.lock().pending(clock::now()));
        let (outbox, advance) = (Outbox(sender), None);
        Self { messages, outbox, planner, running: 0, store, trust, scale, faults, advance }
    }

    /// Where to hand in what is to be sent.
    pub(crate) fn outbox(&self) -> Outbox {
        self.outbox.clone()
    }

    /// Sends until the end is asked for. Attempts in flight are then given up, uncounted: the store
    /// has them as not sent.
    pub(crate) async fn run(mut self, shutdown: Shutdown) {
        let mut housekeeping = tokio::time::interval(HOUSEKEEPING);
        loop {
            let now = clock::now();
            while let Some((delivery, endpoint)) = self.planner.next(now) {
                let begun = self.store.lock().begin(delivery, now);
                match begun {
                    Ok(begun) => {
                        self.running = self.running.saturating_add(1);
                        self.attempt(delivery, endpoint, begun, &shutdown);
                    }
                    Err(later) => {
                        self.planner.finished(endpoint, Outcome::Unsent);
                        if let Some(due) = later {
                            self.planner.add(delivery, endpoint, due);
                        }
                    }
                }
            }
            if self.moves_clock() {
                continue;
            }
            tokio::select! {
                () = shutdown.requested() => break,
                () = until(self.planner.next_due()) => {}
                _ = housekeeping.tick() => self.store.lock().forget_old(clock::now()),
                Some(message) = self.messages.recv() => self.hear(message),
            }
        }
        while self.running > 0 {
            let Some(message) = self.messages.recv().await else { break };
            self.hear(message);
        }
    }

    /// Takes the next step of a move of the clock, if one is under way and nothing is in flight.
    /// True if it moved.
    fn moves_clock(&mut self) -> bool {
        let Some(advance) = self.advance.as_mut().filter(|_| self.running == 0) else {
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
        self.store.lock().forget_old(clock::now());
        if let Some(Advance { stops, done, .. }) = self.advance.take() {
            let _ = done.send(stops);
        }
        true
    }

    fn hear(&mut self, message: Message) {
        let added = match message {
            Message::Advance(advance) => {
                // Two at a time: the later one goes on from where the earlier one stands.
                if let Some(Advance { stops, done, .. }) = self.advance.replace(advance) {
                    let _ = done.send(stops);
                }
                Vec::new()
            }
            Message::Accepted(accepted) => accepted,
            Message::Stored(again) => {
                self.running = self.running.saturating_sub(1);
                again.into_iter().collect()
            }
            Message::Finished { endpoint, outcome } => {
                self.planner.finished(endpoint, outcome);
                Vec::new()
            }
        };
        for ToSend { delivery, endpoint, due, is_retry } in added {
            if is_retry {
                self.planner.add_retry(delivery, endpoint, due);
            } else {
                self.planner.add(delivery, endpoint, due);
            }
        }
    }

    fn attempt(&self, delivery: u64, endpoint: u32, begun: Begun, shutdown: &Shutdown) {
        let (store, outbox, scale) = (Arc::clone(&self.store), self.outbox.clone(), self.scale);
        let (trust, shutdown) = (self.trust.clone(), shutdown.clone());
        let faults = self.faults.clone();
        let slot = Slot::new(endpoint, outbox.clone());
        tokio::spawn(async move {
            let sent = tokio::select! {
                sent = send(&begun, endpoint, &trust, scale, &slot, &faults) => sent,
                () = shutdown.requested() => post::Sent::without_answer(Outcome::Unsent),
            };
            let again = store.lock().finish(
                delivery,
                &begun,
                sent.outcome,
                sent.body.as_deref(),
                scale,
                sent.at,
            );
            log::line(&format!(
                "send {} {} attempt {} {} {} ms",
                begun.body.event_type(),
                begun.body.id(),
                begun.attempt.number(),
                sent.outcome,
                sent.at.since(begun.began_at).as_millis(),
            ));
            let _ = outbox.0.send(Message::Stored(again));
            slot.finish(sent.outcome);
        });
    }
}

/// Step 3, with the fault that is ordered for it, if one is.
async fn send(
    begun: &Begun,
    endpoint: u32,
    trust: &Trust,
    scale: Scale,
    slot: &Slot,
    faults: &Faults,
) -> post::Sent {
    let fault = faults.delivery();
    if let Some(fault) = fault {
        log::line(&format!("sandbox fault {fault:?} {}", begun.body.id()));
    }
    // Receivers go by the machine's clock, wherever the service's has been moved to.
    let mut now = clock::machine();
    let (mut body, mut signer) = (Cow::Borrowed(&begun.body), Cow::Borrowed(&begun.signer));
    match fault {
        Some(DeliveryFault::OutOfOrder) => faults.overtaken(endpoint).await,
        Some(DeliveryFault::WrongSignature) => {
            let secret = SigningSecret::from_random(random::bytes());
            signer = Cow::Owned(Signer::new(secret));
        }
        Some(DeliveryFault::OldTimestamp) => now = now.saturating_sub(TEN_MINUTES),
        Some(DeliveryFault::UnknownType) => body = altered(&begun.body, "/type", "sandbox.unknown"),
        Some(DeliveryFault::ChangedObject) => {
            body = altered(&begun.body, "/data/object", "changed");
        }
        Some(DeliveryFault::Twice) | None => {}
    }
    let post = || {
        let request = begun.attempt.request(&begun.target, &body, &signer, now).map(Full::from);
        let patience = begun.attempt.deadline().since(begun.attempt.began_at());
        post::send(&begun.target, request, trust, scale.timeout(patience), slot)
    };
    if fault == Some(DeliveryFault::Twice) {
        let _ = post().await;
    }
    let sent = post().await;
    if fault != Some(DeliveryFault::OutOfOrder) {
        faults.sent(endpoint);
    }
    sent
}

/// An event with another value at one place.
fn altered<'a>(body: &'a EventBody, at: &str, value: &str) -> Cow<'a, EventBody> {
    let altered = serde_json::from_slice::<Value>(body.as_bytes()).ok().and_then(|mut json| {
        *json.pointer_mut(at)? = value.into();
        EventBody::from_stored(json.to_string()).ok()
    });
    altered.map_or(Cow::Borrowed(body), Cow::Owned)
}

async fn until(due: Option<Timestamp>) {
    match due {
        // A millisecond more than the wait, for timers count in whole ones.
        Some(due) => {
            let wait = due.since(clock::now());
            tokio::time::sleep(wait.saturating_add(std::time::Duration::from_millis(1))).await;
        }
        None => std::future::pending().await,
    }
}
