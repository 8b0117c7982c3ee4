//! The webhook sender: takes what is due in the planner's order, sends it, stores what came of it.
//!
//! One task holds the planner; each attempt is a task of its own. The order of storing and sending
//! is the one `call_assistant::webhook::sender` documents, its steps are functions of the store.

mod slot;

use std::sync::Arc;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Limits, Outcome, Planner};
use http_body_util::Full;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use slot::Slot;

use crate::host::post::{self, Trust};
use crate::host::scale::Scale;
use crate::store::{Begun, Store, ToSend};
use crate::support::shutdown::Shutdown;
use crate::support::{clock, log};

/// At once. Two hundred endpoints that fall silent together, and half as much again for second
/// attempts, leave room for all others.
const LIMITS: Limits = Limits { overall: 448, per_endpoint: 8 };

/// How often what is older than thirty days is forgotten.
const HOUSEKEEPING: std::time::Duration = std::time::Duration::from_secs(60);

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
}

impl Outbox {
    /// Tells the sender of deliveries that are stored. It is there until the process ends, and
    /// finds what it was not told of in the store when it starts again.
    pub(crate) fn send(&self, accepted: Vec<ToSend>) {
        let _ = self.0.send(Message::Accepted(accepted));
    }
}

impl Sender {
    /// A sender of what is pending in a store by now. It has to be told of what comes later.
    pub(crate) fn new(store: Arc<Store>, trust: Trust, scale: Scale) -> Self {
        let (sender, messages) = unbounded_channel();
        let planner = Planner::rebuild(LIMITS, store.lock().pending(clock::now()));
        Self { messages, outbox: Outbox(sender), planner, running: 0, store, trust, scale }
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

    fn hear(&mut self, message: Message) {
        let added = match message {
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
        let slot = Slot::new(endpoint, outbox.clone());
        tokio::spawn(async move {
            let sent = tokio::select! {
                sent = send(&begun, &trust, scale, &slot) => sent,
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

/// Step 3.
async fn send(begun: &Begun, trust: &Trust, scale: Scale, slot: &Slot) -> post::Sent {
    let (body, now) = (&begun.body, clock::now());
    let request = begun.attempt.request(&begun.target, body, &begun.signer, now).map(Full::from);
    let patience = begun.attempt.deadline().since(begun.attempt.began_at());
    post::send(&begun.target, request, trust, scale.timeout(patience), slot).await
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
