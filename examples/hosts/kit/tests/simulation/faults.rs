//! Faults that are aimed: at a step of the store, and the number of times that senders have come to it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use support::dice::Dice;
use testing::store::{Director, Fault, Step, Verdict};

use crate::trace::Trace;

/// A fault, and where it is aimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aimed {
    pub(crate) step: Step,
    /// The number of the time that a sender comes to this step.
    pub(crate) nth: u32,
    pub(crate) blow: Blow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blow {
    Refused,
    /// The answer to a commit is lost.
    Lost,
    /// So many milliseconds.
    Slow(u64),
    /// By so many commits.
    GoesBack(usize),
    /// Another server leads, whose clock is so many milliseconds ahead.
    Clock(i64),
    /// The process stands still, for so many milliseconds.
    Still(u64),
    Killed,
}

impl Blow {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Lost => "answer lost",
            Self::Slow(_) => "slow",
            Self::GoesBack(_) => "goes back",
            Self::Clock(ahead) if ahead < 0 => "clock goes back",
            Self::Clock(_) => "clock goes forward",
            Self::Still(_) => "stands still",
            Self::Killed => "killed",
        }
    }
}

/// The points that are aimed at. Each has to be hit in a long run.
pub(crate) const POINTS: [(Step, Blow); 39] = [
    (Step::Begin, Blow::Refused),
    (Step::Begin, Blow::Slow(5_000)),
    (Step::LockPending, Blow::Refused),
    (Step::LockPending, Blow::Slow(1_500)),
    (Step::LockEnded, Blow::Slow(300)),
    (Step::ReadEndpoints, Blow::Refused),
    (Step::ReadEndpoints, Blow::Slow(4_000)),
    (Step::ReadEndpoints, Blow::Still(9_000)),
    (Step::LockEndpoints, Blow::Refused),
    (Step::LockEndpoints, Blow::Slow(1_500)),
    (Step::LockDue, Blow::Refused),
    (Step::LockRecovery, Blow::Slow(300)),
    (Step::LockMissed, Blow::Refused),
    (Step::LockMissed, Blow::Slow(1_000)),
    (Step::Write, Blow::Refused),
    (Step::Write, Blow::Slow(2_500)),
    (Step::Write, Blow::Still(6_000)),
    (Step::Write, Blow::Killed),
    (Step::Commit, Blow::Refused),
    (Step::Commit, Blow::Lost),
    (Step::Commit, Blow::Slow(5_000)),
    (Step::Commit, Blow::Still(6_000)),
    (Step::Commit, Blow::Killed),
    (Step::Commit, Blow::GoesBack(3)),
    (Step::Commit, Blow::Clock(4_000)),
    (Step::News, Blow::Refused),
    (Step::News, Blow::GoesBack(5)),
    (Step::ReadDeliveries, Blow::Refused),
    (Step::ReadDeliveries, Blow::Still(9_000)),
    (Step::ReadDeliveries, Blow::GoesBack(4)),
    (Step::ReadDeliveries, Blow::Clock(-4_000)),
    (Step::Recoveries, Blow::Refused),
    (Step::Wait, Blow::Refused),
    (Step::Renew, Blow::Refused),
    (Step::Renew, Blow::Slow(3_500)),
    (Step::Live, Blow::Slow(1_200)),
    (Step::Live, Blow::Still(4_500)),
    (Step::Claim, Blow::Refused),
    (Step::Release, Blow::Refused),
];

/// What is to be done to a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Still(usize, Duration),
    Kill(usize),
}

/// What decides about each step.
#[derive(Debug)]
pub(crate) struct Aim(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    dice: Dice,
    faults: Vec<Aimed>,
    is_over: bool,
    times: BTreeMap<Step, u32>,
    orders: VecDeque<Order>,
    went_back: u32,
    hits: BTreeMap<(Step, &'static str), u32>,
    trace: Arc<Trace>,
}

impl Aim {
    pub(crate) fn new(seed: u64, faults: Vec<Aimed>, trace: Arc<Trace>) -> Self {
        let inner = Inner {
            dice: Dice::new(seed),
            faults,
            is_over: false,
            times: BTreeMap::new(),
            orders: VecDeque::new(),
            went_back: 0,
            hits: BTreeMap::new(),
            trace,
        };
        Self(Mutex::new(inner))
    }

    /// From now on nothing fails.
    pub(crate) fn end(&self) {
        self.0.lock().unwrap().is_over = true;
    }

    pub(crate) fn order(&self) -> Option<Order> {
        self.0.lock().unwrap().orders.pop_front()
    }

    /// Returns how often the store went back since this was asked last.
    pub(crate) fn went_back(&self) -> u32 {
        std::mem::take(&mut self.0.lock().unwrap().went_back)
    }

    pub(crate) fn hits(&self) -> BTreeMap<(Step, &'static str), u32> {
        self.0.lock().unwrap().hits.clone()
    }
}

impl Director for Aim {
    fn decide(&self, process: usize, step: Step) -> Verdict {
        let mut inner = self.0.lock().unwrap();
        let mut micros = 100 + inner.dice.below(500);
        if inner.dice.below(64) == 0 {
            micros *= 20;
        }
        if step == Step::News {
            micros += inner.dice.below(20_000);
        }
        let mut verdict = Verdict { wait: Duration::from_micros(micros), fault: None };
        if process == 0 || inner.is_over {
            return verdict;
        }
        let times = inner.times.entry(step).or_default();
        *times += 1;
        let now = *times;
        let aimed = inner.faults.iter().find(|aimed| aimed.step == step && aimed.nth == now);
        let Some(&Aimed { blow, .. }) = aimed else { return verdict };
        *inner.hits.entry((step, blow.name())).or_default() += 1;
        inner.trace.say(|| format!("fault {step:?} {blow:?} of process {process}"));
        match blow {
            Blow::Refused => verdict.fault = Some(Fault::Refused),
            Blow::Lost => verdict.fault = Some(Fault::Lost),
            Blow::Slow(millis) => verdict.wait += Duration::from_millis(millis),
            Blow::GoesBack(commits) => {
                verdict.fault = Some(Fault::GoesBack(commits));
                inner.went_back += 1;
            }
            Blow::Clock(ahead) => {
                verdict.fault = Some(Fault::Clock(ahead));
                inner.went_back += 1;
            }
            Blow::Still(millis) => {
                // It hears the answer when it goes on, before or after what others have done to it.
                let answered = Duration::from_micros(inner.dice.below(5_000));
                verdict.wait += Duration::from_millis(millis) + answered;
                let order = Order::Still(process, Duration::from_millis(millis));
                inner.orders.push_back(order);
            }
            Blow::Killed => inner.orders.push_back(Order::Kill(process)),
        }
        verdict
    }
}
