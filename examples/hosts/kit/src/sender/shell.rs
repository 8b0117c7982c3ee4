//! What carries the commands of a [`Core`] out: tasks, and sleep.

use std::collections::VecDeque;
use std::time::Duration;

use call_assistant::webhook::sender::{FailureReason, Outcome, RetrySchedule, SenderMetrics};
use tokio::sync::{mpsc, watch};
use tracing::{Instrument as _, debug_span};

use super::keep::Keeper;
use super::{
    Begun, Clock, Command, Core, Ended, Event, History, Moment, Notes, Owned, Post, Slot,
    count_missed, park, settle,
};
use crate::log;
use crate::post::{Sent, host};
use crate::program::shutdown::Shutdown;
use crate::program::watch::Watch;
use crate::rows::{Failure, Key, Names, Rows};

/// How long to wait at most before looking again whether the leases are valid.
const LEASES: Duration = Duration::from_millis(200);

/// What the log says of a shortage.
const NOT_MADE: &str = "this machine has no free socket, port or memory for attempts";

/// A sender, and all that it works with.
#[derive(Clone, Debug)]
pub struct Shell<R, P, C, N> {
    pub rows: R,
    pub poster: P,
    pub clock: C,
    pub notes: N,
    pub schedule: RetrySchedule,
    pub owned: watch::Receiver<Owned>,
    pub history: History,
    pub watch: Watch,
    /// How long attempts in flight have to end after shutdown is requested.
    pub grace: Duration,
}

impl<R, P, C, N> Shell<R, P, C, N>
where
    R: Rows,
    P: Post,
    C: Clock,
    N: Notes,
{
    /// Sends until shutdown, and then waits for what is in flight. `note` sees the sender after each turn, and
    /// says whether it has moved the clock.
    pub async fn run(mut self, mut core: Core, mut note: impl FnMut(&Core, Moment) -> bool) {
        let (inbox, mut events) = mpsc::unbounded_channel();
        let keeper = Keeper {
            rows: self.rows.clone(),
            clock: self.clock.clone(),
            notes: self.notes.clone(),
            owned: self.owned.clone(),
            history: self.history.clone(),
            inbox,
        };
        let watch = self.watch.clone();
        let keepers = [
            tokio::spawn(watch.until_shutdown("the sender's poller", keeper.clone().news())),
            tokio::spawn(
                watch.until_shutdown("the sender's recoveries", keeper.clone().recoveries()),
            ),
            tokio::spawn(
                watch.until_shutdown("the sender's reminders", keeper.clone().reminders()),
            ),
        ];
        let mut commands = VecDeque::new();
        let first = self.owned.borrow_and_update().clone();
        core.hear(Event::Owned(first), self.clock.at(), &mut commands);
        let stop = watch.stop().clone();
        let mut end = None;
        loop {
            let at = self.clock.at();
            if self.owned.has_changed().unwrap_or(false) {
                let owned = self.owned.borrow_and_update().clone();
                core.hear(Event::Owned(owned), at, &mut commands);
            }
            while let Ok(event) = events.try_recv() {
                core.hear(event, at, &mut commands);
            }
            while let Some(command) = commands.pop_front().or_else(|| core.next(at)) {
                self.carry_out(command, &keeper);
            }
            if end.is_some_and(|end| core.is_idle() || end <= at.steady) {
                break;
            }
            if note(&core, at) {
                continue;
            }
            let wait = core.wait(at).map_or(LEASES, |wait| wait.min(LEASES));
            tokio::select! {
                biased;
                () = stop.requested(), if end.is_none() => {
                    core.stop();
                    end = at.steady.checked_add(self.grace.saturating_mul(2));
                }
                Some(event) = events.recv() => core.hear(event, self.clock.at(), &mut commands),
                Ok(()) = self.owned.changed() => self.owned.mark_changed(),
                // A millisecond more than the wait, for timers count in whole ones.
                () = self.clock.sleep(wait.saturating_add(Duration::from_millis(1))) => {}
            }
        }
        keepers.iter().for_each(tokio::task::JoinHandle::abort);
    }

    /// Begins what a command says.
    fn carry_out(&self, command: Command, keeper: &Keeper<R, C, N>) {
        let (own, keeper) = (self.clone(), keeper.clone());
        match command {
            Command::Read(planned) => self.spawn("reading of deliveries", async move {
                let keys: Vec<Key> = planned.iter().map(Key::of_planned).collect();
                let read = own.rows.to_begin(&keys, own.clock.at().now).await;
                own.notes.tried("deliveries are not read", &read);
                keeper.hear(Event::Read(planned, read));
            }),
            Command::Post(begun) => self.spawn("an attempt", async move {
                own.attempt(*begun, &keeper).await;
            }),
            Command::Store(batch, how) => self.spawn("storing of attempts", async move {
                let now = own.clock.at().now;
                let settled = settle(&own.rows, own.schedule, &batch, how, now).await;
                match &settled {
                    Err(Failure::Outdated) => own.notes.count(SenderMetrics::lost_write),
                    stored => own.notes.tried("attempts are not stored", stored),
                }
                if let Ok(settled) = &settled {
                    own.notes.count(|tally| tally.settled(settled));
                }
                keeper.hear(Event::Stored(batch, how, Box::new(settled)));
            }),
            Command::Park(endpoint) => self.spawn("parking of deliveries", async move {
                let parked = park(&own.rows, endpoint, own.clock.at().now).await;
                own.notes.tried("parking", &parked);
                keeper.hear(Event::Parked(endpoint, parked));
            }),
            Command::CountMissed(health, opened) => {
                self.spawn("the count of missed deliveries", async move {
                    let now = own.clock.at().now;
                    let counted = count_missed(&own.rows, &health, &opened.names, now).await;
                    if let Err(error) = counted {
                        log::warn!(%error, "counting missed deliveries");
                    }
                })
            }
            Command::LookAgain(why) => self.history.look_again(why.as_deref()),
        }
    }

    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.watch.without_panic(name, task));
    }

    /// Makes an attempt, unless it has no time left.
    async fn attempt(&self, begun: Begun, keeper: &Keeper<R, C, N>) {
        let Begun { body, name, opened, .. } = &begun;
        let Names { account, endpoint, .. } = &opened.names;
        let (event, delivery) = (body.id().as_str(), name.as_str());
        let (attempt, traceparent) = (begun.attempt.number(), begun.traceparent.as_deref());
        let span = debug_span!("attempt", attempt, account, endpoint, event, delivery, traceparent);
        let told = keeper.clone();
        let number = begun.key.endpoint;
        let slot = Slot::new(move |outcome, took| {
            told.hear(Event::Freed { endpoint: number, outcome, took });
        });
        let sent = tokio::select! {
            biased;
            sent = self.poster.post(&begun, &slot).instrument(span.clone()) => sent,
            () = given_up(self.watch.stop(), &self.clock, self.grace) => {
                let at = self.clock.at();
                Sent {
                    took: at.steady.saturating_sub(begun.at.steady),
                    reason: Some(FailureReason::Stopping),
                    ..Sent::without_answer(Outcome::Unsent, at.now)
                }
            }
        };
        if sent.lacks_resources() {
            self.notes.tried("attempts cannot be made", &Err::<(), _>(NOT_MADE));
        } else {
            let (outcome, took_us) = (sent.outcome.to_string(), log::micros(sent.took));
            log::info!(
                parent: &span,
                attempt,
                outcome,
                reason = sent.reason.as_ref().map(FailureReason::as_str),
                took_us,
                account,
                endpoint,
                event,
                delivery,
                r#type = body.event_type().as_str(),
                traceparent,
                host = opened.destination.as_ref().map(|it| host(it.target())),
                "attempt",
            );
        }
        if sent.outcome != Outcome::Unsent {
            self.notes.tried("attempts cannot be made", &Ok::<_, Failure>(()));
        }
        let (outcome, took) = (sent.outcome, sent.took);
        let Begun { key, row, attempt, opened, .. } = begun;
        let ended = Ended { key, row, attempt, opened, at: sent.at, sent };
        keeper.hear(Event::Ended(Box::new(ended)));
        slot.finish(outcome, took);
    }
}

/// Returns when attempts in flight have had their time to end.
async fn given_up(stop: &Shutdown, clock: &impl Clock, grace: Duration) {
    stop.requested().await;
    clock.sleep(grace).await;
}
