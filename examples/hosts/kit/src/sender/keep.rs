//! The loops of a sender beside its attempts: it looks for news and limits, makes the steps of recoveries, and
//! reminds owners.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::{Clock, Event, History, Notes, Owned, recover, remind};
use crate::log;
use crate::rows::{News, Rows, Shards};

/// How long to wait after an error.
const AFTER_ERROR: Duration = Duration::from_millis(200);

/// How often to look what operators have set.
const LIMITS: Duration = Duration::from_secs(1);

/// How long to wait before everything is found again, so that nothing of it is a loop without a wait.
const BEFORE_AGAIN: Duration = Duration::from_millis(500);

/// How often to look while a recovery runs, while none does, and after an error.
const RUNNING: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(500);
const AFTER_STEP: Duration = Duration::from_secs(1);

/// How many recoveries make a step at a time.
const STEPS: usize = 4;

/// How often owners are reminded. Shards that are new are looked at when they are owned.
const REMIND: Duration = Duration::from_secs(60);
const OWNED: Duration = Duration::from_secs(1);

/// The loops of a sender, and all that they work with.
#[derive(Clone, Debug)]
pub struct Keeper<R, C, N> {
    pub rows: R,
    pub clock: C,
    pub notes: N,
    pub owned: watch::Receiver<Owned>,
    pub history: History,
    pub inbox: mpsc::UnboundedSender<Event>,
}

impl<R: Rows, C: Clock, N: Notes> Keeper<R, C, N> {
    /// Looks for what became pending, and for what operators have set: what is paused is known before anything is
    /// found.
    pub async fn news(self) {
        let mut seen = R::Seen::default();
        let mut limits_at = None;
        loop {
            let at = self.clock.at().steady;
            if limits_at.is_none_or(|limits_at| limits_at <= at) {
                let limits = self.rows.limits().await;
                self.notes.tried("levers", &limits);
                match limits {
                    Ok(limits) => {
                        self.notes.round("levers");
                        self.hear(Event::Limits(limits));
                        limits_at = at.checked_add(LIMITS);
                    }
                    Err(_) if limits_at.is_none() => {
                        self.clock.sleep(AFTER_ERROR).await;
                        continue;
                    }
                    Err(_) => limits_at = at.checked_add(LIMITS),
                }
            }
            let shards = self.shards();
            let news = self.rows.news(&shards, &mut seen).await;
            self.notes.tried("looking for deliveries", &news);
            match news {
                Ok(news) => {
                    self.notes.round("looks");
                    if news.went_back.is_some() {
                        self.history.look_again(news.went_back.as_deref());
                    }
                    if news.again || !news.rows.is_empty() {
                        self.hear(Event::News(news));
                    }
                }
                Err(_) => self.clock.sleep(AFTER_ERROR).await,
            }
            if self.history.is_to_be_read() {
                self.clock.sleep(BEFORE_AGAIN).await;
                self.history.begins();
                seen = R::Seen::default();
                self.hear(Event::News(News { again: true, ..News::default() }));
            }
        }
    }

    /// Makes the steps of recoveries of what is owned.
    pub async fn recoveries(self) {
        let mut failed: BTreeMap<u64, Duration> = BTreeMap::new();
        loop {
            let at = self.clock.at();
            let mut wait = IDLE;
            if self.owned.borrow().is_valid(at) {
                failed.retain(|_, since| since.saturating_add(AFTER_STEP) > at.steady);
                let running = self.rows.recoveries(&self.shards(), at.now).await;
                let stepped = match running {
                    Ok(ids) => {
                        for some in ids.chunks(STEPS) {
                            self.step(some, &mut failed).await;
                        }
                        Ok(ids.len() > failed.len())
                    }
                    Err(failure) => Err(failure),
                };
                self.notes.tried("recoveries", &stepped);
                wait = match stepped {
                    Ok(more) => {
                        self.notes.round("recoveries");
                        if more { RUNNING } else { IDLE }
                    }
                    Err(_) => AFTER_STEP,
                };
            }
            self.clock.sleep(wait).await;
        }
    }

    /// Makes a step of each of these, at the same time. The others go on where one fails.
    async fn step(&self, ids: &[u64], failed: &mut BTreeMap<u64, Duration>) {
        let one = async |nth: usize| {
            let id = ids.get(nth).filter(|id| !failed.contains_key(id))?;
            Some((*id, recover::step(&self.rows, *id, self.clock.at().now).await))
        };
        let done: [_; STEPS] = tokio::join!(biased; one(0), one(1), one(2), one(3)).into();
        for (id, done) in done.into_iter().flatten() {
            if let Err(error) = done {
                log::warn!(recovery = format!("rcv_{id}"), %error, "a recovery makes no progress");
                failed.insert(id, self.clock.at().steady);
            }
        }
    }

    /// Reminds the owners of endpoints of what is owned.
    pub async fn reminders(self) {
        let mut looked_at = Shards::new();
        let mut due_at = Duration::ZERO;
        loop {
            let (at, shards) = (self.clock.at(), self.shards());
            if due_at <= at.steady || !shards.keys().eq(looked_at.keys()) {
                let reminded = remind(&self.rows, &shards, at.now).await;
                self.notes.tried("reminders", &reminded);
                if let Ok(alerts) = reminded {
                    self.notes.count(|tally| alerts.iter().for_each(|alert| tally.alerted(alert)));
                    self.notes.round("reminders");
                }
                (looked_at, due_at) = (shards, at.steady.saturating_add(REMIND));
            }
            self.clock.sleep(OWNED).await;
        }
    }

    fn shards(&self) -> Shards {
        self.owned.borrow().shards.clone()
    }

    pub(super) fn hear(&self, event: Event) {
        // The core may have ended.
        let _ = self.inbox.send(event);
    }
}
