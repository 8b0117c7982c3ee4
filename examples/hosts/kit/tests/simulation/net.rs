//! Receivers of all manners, and what they have answered.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::Outcome;
use host::post::Sent;
use host::sender::{Begun, Post, Slot};
use http::StatusCode;
use support::dice::Dice;
use testing::judge::Answers;
use testing::store::{Store, Time};

use crate::plan::{Manner, Plan};
use crate::trace::Trace;

/// The time of an attempt.
const PATIENCE: u64 = 10_000;

/// The most redeliveries of an endpoint in flight: three quarters of its attempts.
const REDELIVERIES: u32 = 6;

/// All receivers.
#[derive(Debug)]
pub(crate) struct Net {
    time: Time,
    manners: BTreeMap<u64, Manner>,
    /// How long an attempt of these endpoints may wait.
    prompt: (BTreeSet<u64>, Duration),
    inner: Mutex<Inner>,
    trace: Arc<Trace>,
}

#[derive(Debug)]
struct Inner {
    dice: Dice,
    answers: HashMap<(u64, String), Answers>,
    /// How many redeliveries of an endpoint a process has in flight.
    manual: BTreeMap<(usize, u64), u32>,
    wrong: Vec<String>,
    attempts: u64,
    /// The highest number of an attempt.
    most: u8,
    /// When the store went back last: what came back was due long ago.
    went_back: Timestamp,
}

impl Net {
    pub(crate) fn new(time: Time, plan: &Plan, trace: Arc<Trace>) -> Self {
        let manners: BTreeMap<u64, Manner> =
            plan.endpoints.iter().map(|each| (each.number.into(), each.manner)).collect();
        let is_good = |account| {
            let mut of = plan.endpoints.iter().filter(|each| each.account == account);
            of.all(|each| each.manner == Manner::Good)
        };
        let good = plan.endpoints.iter().filter(|each| !plan.is_limited() && is_good(each.account));
        let prompt = (good.map(|each| each.number.into()).collect(), plan.patience());
        let dice = Dice::new(plan.seed);
        let (answers, manual, wrong) = (HashMap::new(), BTreeMap::new(), Vec::new());
        let went_back = Timestamp::MIN;
        let inner =
            Mutex::new(Inner { dice, answers, manual, wrong, attempts: 0, most: 0, went_back });
        Self { time, manners, prompt, inner, trace }
    }

    /// Returns what was answered to an event at an endpoint.
    pub(crate) fn answers(&self, endpoint: u64, event: &str) -> Answers {
        let inner = self.inner.lock().unwrap();
        inner.answers.get(&(endpoint, event.to_owned())).copied().unwrap_or_default()
    }

    pub(crate) fn attempts(&self) -> (u64, u8) {
        let inner = self.inner.lock().unwrap();
        (inner.attempts, inner.most)
    }

    pub(crate) fn wrong(&self) -> Vec<String> {
        self.inner.lock().unwrap().wrong.clone()
    }

    pub(crate) fn went_back(&self, now: Timestamp) {
        self.inner.lock().unwrap().went_back = now;
    }

    pub(crate) fn blame(&self, wrong: String) {
        self.inner.lock().unwrap().wrong.push(wrong);
    }

    /// Counts redeliveries of an endpoint that a process has in flight. New events have room beside them.
    fn redelivers(&self, of: (usize, u64), change: impl FnOnce(u32) -> u32) {
        let mut inner = self.inner.lock().unwrap();
        let count = inner.manual.entry(of).or_default();
        *count = change(*count);
        if *count > REDELIVERIES {
            let wrong = format!("{count} redeliveries of endpoint {} are in flight", of.1);
            inner.wrong.push(wrong);
        }
    }

    /// Returns how long a receiver takes, and its outcome.
    fn answer(&self, endpoint: u64) -> (u64, Outcome) {
        let (now, manner) = (self.time.now(), self.manners[&endpoint]);
        let mut inner = self.inner.lock().unwrap();
        let quick = 1 + inner.dice.below(60);
        let failed = match inner.dice.below(4) {
            0 => (quick, Outcome::Reset),
            1 => (quick, Outcome::Dns),
            2 => (PATIENCE, Outcome::TimedOut),
            _ => (quick, Outcome::Answered(StatusCode::INTERNAL_SERVER_ERROR)),
        };
        let good = (quick, Outcome::Answered(StatusCode::OK));
        match manner {
            Manner::Good => good,
            Manner::Slow => (inner.dice.below(PATIENCE), good.1),
            Manner::Late(took) => (took, good.1),
            Manner::Overloaded(took) => (took, Outcome::Answered(StatusCode::SERVICE_UNAVAILABLE)),
            Manner::Silent => (PATIENCE, Outcome::TimedOut),
            Manner::Failing => (quick, Outcome::Answered(StatusCode::BAD_GATEWAY)),
            Manner::Refusing => (quick, Outcome::Refused),
            Manner::GoneBetween(from, until) if from <= now && now < until => {
                (quick, Outcome::Answered(StatusCode::GONE))
            }
            Manner::DownBetween(from, until) if from <= now && now < until => failed,
            Manner::Flaky(percent) if inner.dice.chance(percent) => failed,
            Manner::GoneBetween(..) | Manner::DownBetween(..) | Manner::Flaky(_) => good,
        }
    }
}

/// What makes the attempts of a process.
#[derive(Clone, Debug)]
pub(crate) struct Poster {
    pub(crate) net: Arc<Net>,
    pub(crate) store: Store,
    pub(crate) process: usize,
    /// Whether its clock agrees with the store's.
    pub(crate) agrees: Arc<AtomicBool>,
}

impl Post for Poster {
    async fn post(&self, begun: &Begun, _: &Slot) -> Sent {
        let (net, opened) = (&self.net, &begun.opened);
        let destination = opened.destination.as_ref().unwrap();
        let request = begun.attempt.request(destination, &begun.body, begun.at.now).unwrap();
        let (endpoint, event) = (begun.row.endpoint(), begun.body.id().as_str());
        let host = format!("{}.example.com", begun.body.account_id().as_str().replace('_', "-"));
        if request.uri().host() != Some(host.as_str()) {
            net.blame(format!("event {event} of {host} is sent to {}", request.uri()));
        }
        if !self.agrees.load(Ordering::Relaxed) {
            net.blame(format!("process {} sends, and its clock is wrong", self.process));
        }
        // As it is stored: when the attempt was to begin.
        let due = self.store.due(begun.key.delivery, begun.at.now);
        let since = net.inner.lock().unwrap().went_back;
        let waited = due.map_or(Duration::ZERO, |due| begun.at.now.since(due.max(since)));
        if net.prompt.0.contains(&endpoint) && net.prompt.1 < waited {
            net.blame(format!("delivery {} waited {waited:?}", begun.key.delivery));
        }
        let (took, outcome) = net.answer(endpoint);
        let number = begun.attempt.number();
        net.trace.say(|| {
            let (process, delivery) = (self.process, begun.key.delivery);
            format!(
                "post {process}: delivery {delivery} attempt {number} to {} {outcome}",
                request.uri()
            )
        });
        {
            let mut inner = net.inner.lock().unwrap();
            (inner.attempts, inner.most) = (inner.attempts + 1, inner.most.max(number));
            // It is answered, whether its sender hears it or not.
            let answers = inner.answers.entry((endpoint, event.to_owned())).or_default();
            answers.requests += 1;
            answers.good += u32::from(outcome.is_success());
            answers.gone += u32::from(outcome == Outcome::Answered(StatusCode::GONE));
        }
        let took = Duration::from_millis(took);
        let (of, is_manual) = ((self.process, endpoint), u32::from(begun.attempt.is_manual()));
        net.redelivers(of, |count| count + is_manual);
        net.time.sleep(took).await;
        net.redelivers(of, |count| count - is_manual);
        let at = begun.at.now.saturating_add(took);
        Sent { took, ..Sent::without_answer(outcome, at) }
    }
}
