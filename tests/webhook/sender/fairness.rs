//! The planner beside accounts that choose how long each of their attempts lasts and how it ends:
//! nobody of another account is held up. (D-89)

use std::time::Duration;

use call_assistant::webhook::sender::{
    DueDelivery, DueKind, Outcome, Planner, RETRY_WAITS, SenderLimits,
};

use super::planner::pending;
use super::{answered, start};
use support::millis as at;
use support::simulation::Agenda;

const TIMEOUT: Millis = 10_000;
/// How long each world runs, and how often the healthy endpoint has an event in it.
const SPAN: Millis = 300_000;
const EVENTS: usize = 300;

/// Milliseconds since the start.
type Millis = u64;

/// What an adversary's endpoints do with the attempts that they get. All have a backlog that never
/// ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// 200 after 9 s.
    LateSuccess,
    /// 500 after 9.9 s.
    LateFailure,
    /// No answer, and then a late one.
    Alternating,
    /// Each attempt is held until the account has held its first one for 9.9 s, and then all end
    /// at once with 200: the latest are quick.
    Together,
    /// At once, and then after 9.9 s.
    QuickThenLate,
    /// Each account waits for those before it to hold all they can, and does the same.
    InTurn,
    /// No answer.
    Silent,
    /// 500 after 7.9 s, which is not long.
    NearlyLate,
}

use Manner::{
    Alternating, InTurn, LateFailure, LateSuccess, NearlyLate, QuickThenLate, Silent, Together,
};

const MANNERS: [Manner; 7] =
    [LateSuccess, LateFailure, Alternating, Together, QuickThenLate, InTurn, Silent];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Event,
    End {
        endpoint: u32,
        delivery: u64,
        took: Millis,
    },
    /// An adversary's account begins to have something to send.
    Begin(u32),
    Wake,
}

struct World {
    limits: SenderLimits,
    manner: Manner,
    /// Of each adversary's account.
    endpoints: u32,
    agenda: Agenda<Happens>,
    planner: Planner,
    /// When each delivery was due, and how often it has failed.
    deliveries: Vec<(Millis, usize)>,
    /// How often each endpoint was attempted.
    attempts: Vec<u32>,
    /// When each account lets go of everything.
    release: Vec<Millis>,
    held: Vec<u32>,
    most_held: u32,
    /// Of the events of the healthy endpoint that were sent: how long each waited, and when it began.
    waits: Vec<Millis>,
    begun: Vec<Millis>,
}

/// The account and the endpoint that are healthy: the first ones.
const HEALTHY: u32 = 0;
const BY_CHANCE: Millis = 37;

/// Other accounts, with so many endpoints each, and so many deliveries of each that are due when it begins.
fn run(overall: u32, (accounts, endpoints, backlog): (u32, u32, usize), manner: Manner) -> World {
    let limits = SenderLimits { overall, per_endpoint: 8 };
    let mut world = World {
        limits,
        manner,
        endpoints,
        agenda: Agenda::new([]),
        planner: Planner::new(limits),
        deliveries: Vec::new(),
        attempts: vec![0; 1 + (accounts * endpoints) as usize],
        release: vec![0; 1 + accounts as usize],
        held: vec![0; 1 + accounts as usize],
        most_held: 0,
        waits: Vec::new(),
        begun: Vec::new(),
    };
    for account in 1..=accounts {
        let begin = if manner == InTurn { u64::from(account - 1) } else { 0 };
        world.agenda.plan(begin, Happens::Begin(account));
    }
    for event in 0..EVENTS as Millis {
        world.agenda.plan(BY_CHANCE + event * 1_000, Happens::Event);
    }
    while let Some((now, what)) = world.agenda.pop()
        && now < SPAN
    {
        match what {
            Happens::Event => world.add(HEALTHY, now, now, 0),
            Happens::Begin(account) => {
                for endpoint in 0..endpoints {
                    for _ in 0..backlog {
                        world.add(1 + (account - 1) * endpoints + endpoint, now, now, 0);
                    }
                }
            }
            Happens::End { endpoint, delivery, took } => world.end(endpoint, delivery, took, now),
            Happens::Wake => {}
        }
        // Everything of one instant is heard first.
        if world.agenda.is_past(now) {
            world.send(now);
        }
    }
    world
}

impl World {
    fn account(&self, endpoint: u32) -> u32 {
        endpoint.checked_sub(1).map_or(HEALTHY, |other| 1 + other / self.endpoints)
    }

    fn add(&mut self, endpoint: u32, due: Millis, now: Millis, failed: usize) {
        let (account, due) = (self.account(endpoint), due.max(now));
        let delivery = self.deliveries.len() as u64;
        self.deliveries.push((due, failed));
        let kind = if failed > 0 { DueKind::Retry } else { DueKind::First };
        self.planner.add(DueDelivery { account, kind, ..pending(delivery, endpoint, at(due)) });
    }

    fn send(&mut self, now: Millis) {
        while let Some(DueDelivery { delivery, endpoint, .. }) = self.planner.next(at(now)) {
            let account = self.account(endpoint);
            let held = &mut self.held[account as usize];
            *held += 1;
            self.most_held = self.most_held.max(*held);
            let (due, _) = self.deliveries[delivery as usize];
            let took = if endpoint == HEALTHY {
                self.waits.push(now - due);
                self.begun.push(now);
                20
            } else {
                // There is always more.
                self.add(endpoint, now, now, 0);
                self.took(endpoint, account, now)
            };
            self.agenda.plan(now + took, Happens::End { endpoint, delivery, took });
        }
        assert!(self.planner.in_flight() <= self.limits.overall);
        if let Some(due) = self.planner.next_due() {
            self.agenda.plan(due.since(start()).as_micros().div_ceil(1_000) as u64, Happens::Wake);
        }
    }

    fn took(&mut self, endpoint: u32, account: u32, now: Millis) -> Millis {
        let attempts = &mut self.attempts[endpoint as usize];
        *attempts += 1;
        let is_odd = *attempts % 2 == 1;
        match self.manner {
            LateSuccess => 9_000,
            Alternating if is_odd => TIMEOUT,
            QuickThenLate if is_odd => 1,
            LateFailure | Alternating | QuickThenLate => 9_900,
            Silent => TIMEOUT,
            NearlyLate => 7_900,
            Together | InTurn => {
                let release = &mut self.release[account as usize];
                if *release <= now {
                    *release = now + 9_900;
                }
                *release - now
            }
        }
    }

    fn end(&mut self, endpoint: u32, delivery: u64, took: Millis, now: Millis) {
        let outcome = match self.manner {
            _ if endpoint == HEALTHY => answered(204),
            _ if took == TIMEOUT => Outcome::TimedOut,
            LateFailure | NearlyLate => answered(500),
            _ => answered(200),
        };
        let account = self.account(endpoint) as usize;
        self.held[account] -= 1;
        self.planner.finished(endpoint, outcome, Duration::from_millis(took));
        self.planner.release(delivery, None);
        let (_, failed) = self.deliveries[delivery as usize];
        if !outcome.is_success()
            && let Some(wait) = RETRY_WAITS.get(failed)
        {
            self.add(endpoint, now + wait.as_millis() as Millis, now, failed + 1);
        }
    }

    /// All were sent, and none waited.
    #[track_caller]
    fn expect_no_wait(self, name: &str) {
        let (sent, worst, held) = (self.waits.len(), self.waits.iter().max(), self.most_held);
        println!("{name}: sent {sent}, worst {worst:?} ms; one held {held}");
        assert_eq!((sent, worst), (EVENTS, Some(&0)), "{name}");
        assert!(held <= self.limits.overall / 2, "{name}: one held {held}");
    }

    /// However many wait for it, each next one is sent after at most so long.
    #[track_caller]
    fn expect_turns(&self, name: &str, most: Millis) {
        let begun = [0].into_iter().chain(self.begun.iter().copied()).chain([SPAN]);
        let begun: Vec<_> = begun.collect();
        let worst = begun.windows(2).map(|two| two[1] - two[0]).max().unwrap();
        println!("{name}: sent {}, a turn at least each {worst} ms", self.waits.len());
        assert!(worst <= most, "{name}: {worst} ms, not {most}");
    }
}

/// Beside one account, or fewer than an eighth of all attempts, the bound of the planner's page is zero. (D-89)
#[test]
fn accounts_that_answer_late_delay_no_other() {
    for manner in MANNERS {
        for (accounts, endpoints) in
            [(1, 500), (1, 1_000), (1, 5_000), (2, 1_000), (16, 1_000), (55, 20)]
        {
            let world = run(448, (accounts, endpoints, 10), manner);
            world.expect_no_wait(&format!("beside {accounts} of {endpoints}, {manner:?}"));
        }
    }
}

/// The bound of the planner's page where there are more, for the next turn, also behind any backlog: how much
/// is due, and how long it has been, delays nobody else. The most that a planner wakes in a step are fewer than
/// these endpoints. The last two have a million that are due when a sender begins. (D-89)
#[test]
fn with_more_accounts_than_attempts_each_has_its_turn() {
    let behind = [NearlyLate, Silent, LateFailure, Together];
    for (overall, accounts, endpoints, backlog, manners) in [
        (448, 100, 20, 10, &MANNERS[..]),
        (448, 600, 4, 10, &MANNERS),
        (1, 1, 8, 10, &MANNERS),
        (2, 3, 8, 10, &MANNERS),
        (28_u32, 28_u32, 10, 70, &behind),
        (28, 14, 40, 40, &behind),
        (16, 32, 10, 60, &behind),
        (448, 448, 10, 224, &behind),
        (448, 1_000, 10, 100, &behind),
    ] {
        let most = TIMEOUT * u64::from((2 * (accounts + 1)).div_ceil(overall));
        for manner in manners {
            let name =
                format!("{overall} behind {accounts} of {endpoints} with {backlog}, {manner:?}");
            run(overall, (accounts, endpoints, backlog), *manner).expect_turns(&name, most);
        }
    }
}
