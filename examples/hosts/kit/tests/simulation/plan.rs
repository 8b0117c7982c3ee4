//! What is to happen in a day, by its seed.

use std::fmt;
use std::time::Duration;

use support::dice::Dice;
use testing::store::Step;

use crate::faults::{Aimed, Blow, POINTS};

/// The shards of the world.
pub(crate) const SHARDS: u16 = 8;

/// More accounts than a sender has attempts.
const LATE: u32 = 480;

/// When the last event at random is accepted. Its sixth attempt is more than seven hours later.
pub(crate) const LAST_EVENT: Duration = Duration::from_secs(12 * 3600);

/// When owners and operators have done what they do.
const CALM: Duration = Duration::from_secs(15 * 3600);

/// When faults, pauses and limits end.
pub(crate) const MENDED: Duration = Duration::from_secs(16 * 3600);

/// When everything has ended.
pub(crate) const END: Duration = Duration::from_secs(26 * 3600);

/// All that happens to a world. Taking anything out leaves a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) senders: usize,
    pub(crate) endpoints: Vec<EndpointPlan>,
    /// When an event of which account is accepted.
    pub(crate) events: Vec<(Duration, u32)>,
    pub(crate) deeds: Vec<(Duration, Deed)>,
    pub(crate) faults: Vec<Aimed>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct EndpointPlan {
    /// It keeps its number when others are taken out.
    pub(crate) number: u32,
    pub(crate) account: u32,
    pub(crate) manner: Manner,
}

/// How a receiver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Good,
    /// It takes up to ten seconds, and answers well.
    Slow,
    /// It takes so many milliseconds, and answers well.
    Late(u64),
    /// It takes so many milliseconds, and answers 503.
    Overloaded(u64),
    Silent,
    Failing,
    Refusing,
    /// It answers 410 in this time, and well before and after.
    GoneBetween(Duration, Duration),
    /// It fails so many times of a hundred.
    Flaky(u64),
    DownBetween(Duration, Duration),
}

/// What somebody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// An owner, with an endpoint.
    Pause(u32),
    Enable(u32),
    Move(u32),
    Recover(u32),
    Redeliver(u32),
    /// A sender of another kind, which begins an attempt of an endpoint and dies.
    Abandon(u32),
    /// An operator.
    LimitAll(u32),
    LimitAccount(u32, u32),
    LimitEndpoint(u32, u32),
    NoLimits,
    /// The store goes back by so many commits.
    GoBack(usize),
    /// A transaction that accepts an event for an account, and is open for so many seconds.
    Hold(u32, u64),
    /// To one of the senders that run.
    Kill(u64),
    Still(u64, u64),
    Drain(u64),
    /// The clock of one is wrong, for so many seconds.
    Clock(u64, u64),
    Start,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let accounts = 2 + dice.below(10);
        let mut plan = Self { seed, senders: 1, ..Self::default() };
        for account in 1..=u32::try_from(accounts).unwrap() {
            for _ in 0..1 + dice.below(3) {
                plan.add(account, manner(&mut dice));
            }
        }
        let count = [40, 150, 400, 900][usize::try_from(dice.below(4)).unwrap()];
        let mut events = Vec::new();
        while events.len() < count {
            let (at, account) = (instant(&mut dice), account(&mut dice, accounts));
            // Sometimes many at once.
            let burst = if dice.chance(5) { 20 } else { 1 };
            events.extend((0..burst).map(|nth| (at + Duration::from_millis(nth * 3), account)));
        }
        events.sort();
        plan.events = events;
        if seed % 64 == 8 {
            plan.crowd(u32::try_from(accounts).unwrap());
            return plan;
        }
        plan.senders = 1 + usize::try_from(dice.below(4)).unwrap();
        let new = u32::try_from(accounts).unwrap() + 1;
        match seed % 16 {
            3 => plan.enabled_again(new),
            5 => plan.numbers_again(&mut dice, accounts),
            7 => plan.redelivered_in_flight(new),
            11 => plan.number_in_hand(new),
            13 => plan.overtaken(&mut dice, new),
            _ => {}
        }
        for _ in 0..dice.below(30) {
            let at = instant(&mut dice);
            let deed = plan.deed(&mut dice, accounts);
            plan.deeds.push((at, deed));
            match deed {
                Deed::Kill(_) | Deed::Drain(_) => {
                    let later = Duration::from_millis(dice.below(20_000));
                    plan.deeds.push((at + later, Deed::Start));
                }
                Deed::Pause(endpoint) => {
                    let later = Duration::from_millis(u64::try_from(dice.span(7_200_000)).unwrap());
                    plan.deeds.push((at + later, Deed::Enable(endpoint)));
                    if dice.chance(50) {
                        plan.deeds.push((at + later, Deed::Recover(endpoint)));
                    }
                }
                Deed::LimitAll(_) | Deed::LimitAccount(..) | Deed::LimitEndpoint(..) => {
                    let later = Duration::from_millis(u64::try_from(dice.span(7_200_000)).unwrap());
                    plan.deeds.push((at + later, Deed::NoLimits));
                }
                _ => {}
            }
        }
        plan.deeds.sort_by_key(|(at, _)| *at);
        // In a day without faults nobody waits.
        if seed.is_multiple_of(8) {
            plan.deeds.retain(|(_, deed)| !deed.delays());
            return plan;
        }
        for _ in 0..dice.below(12) {
            let (step, blow) = POINTS[usize::try_from(dice.below(POINTS.len() as u64)).unwrap()];
            let most = 1 << dice.below(11);
            let nth = u32::try_from(1 + dice.below(most)).unwrap();
            plan.faults.push(Aimed { step, nth, blow });
        }
        plan
    }

    /// Adds more late receivers than a sender has attempts: of one account each, or all of one account. Each of those
    /// accounts is known to be late when all get much at once, and one account has half of the attempts at most, so
    /// nobody else waits.
    fn crowd(&mut self, accounts: u32) {
        let at = |seconds, nth| Duration::from_secs(seconds) + Duration::from_millis(nth);
        let is_one = self.seed % 128 == 72;
        for nth in 0..LATE {
            let account = accounts + 1 + if is_one { 0 } else { nth };
            // In one account some are never late enough to be known.
            self.add(account, Manner::Late(if is_one && nth % 2 == 0 { 7_900 } else { 9_000 }));
            if is_one && nth > 0 {
                continue;
            }
            let nth = u64::from(nth);
            self.events
                .extend([at(3_600, nth * 500), at(3_600, nth * 500 + 1)].map(|at| (at, account)));
            self.events.extend([at(7_200, nth), at(7_200, nth + 1)].map(|at| (at, account)));
        }
        for account in 1..=accounts {
            self.events.extend((0..60).map(|nth| (at(7_201, nth * 250), account)));
        }
        self.events.sort();
    }

    /// Has senders stand still in their attempts at receivers that are gone for a moment: others deliver these events
    /// meanwhile, and the late result still disables the endpoint.
    fn overtaken(&mut self, dice: &mut Dice, new: u32) {
        self.senders = self.senders.max(2);
        for (nth, account) in (1..).zip(new..new + 8) {
            let at = Duration::from_secs(nth * 60);
            self.add(account, Manner::GoneBetween(at, at + Duration::from_secs(3)));
            self.events.push((at, account));
            let later = Duration::from_millis(20 + dice.below(50));
            self.deeds.push((at + later, Deed::Still(dice.bits(), 6 + dice.below(9))));
        }
        self.events.sort();
    }

    /// Has endpoints of all shards paused and enabled again before their waiting deliveries are due. New deliveries then
    /// wait as well, and are not forgotten when the older ones are parked. Afterwards nobody looks again in most shards.
    fn enabled_again(&mut self, new: u32) {
        let at = |millis| CALM + Duration::from_millis(millis);
        for account in new..new + u32::from(SHARDS) {
            let endpoint = self.add(account, Manner::Failing);
            self.events.extend([(at(0), account), (at(3_000), account)]);
            self.deeds.push((at(2_000), Deed::Pause(endpoint)));
            self.deeds.push((at(2_500), Deed::Enable(endpoint)));
        }
        self.events.sort();
    }

    /// Has the store go back while deliveries of all shards are in hand, and their numbers given to others. These are
    /// found when those are no longer in hand. Afterwards nobody looks again in most shards.
    fn number_in_hand(&mut self, new: u32) {
        for _ in 0..SHARDS {
            self.add(new, Manner::Late(9_000));
        }
        for _ in 0..SHARDS {
            self.add(new + 1, Manner::Good);
        }
        self.events.push((CALM, new));
        self.deeds.push((CALM + Duration::from_millis(300), Deed::GoBack(3)));
        let at = CALM + Duration::from_millis(1_500);
        self.events.extend([(at, new + 1); 2]);
        self.events.sort();
    }

    /// Has deliveries recovered that are in flight. Their results are late, and they are redeliveries from then on.
    fn redelivered_in_flight(&mut self, new: u32) {
        let endpoint = self.add(new, Manner::Overloaded(6_000));
        self.events.extend([(CALM, new); 8]);
        self.events.sort();
        let deeds = [Deed::Pause(endpoint), Deed::Enable(endpoint), Deed::Recover(endpoint)];
        self.deeds.extend((1..).map(|nth| CALM + Duration::from_secs(nth)).zip(deeds));
    }

    /// Adds an endpoint, and returns its number.
    fn add(&mut self, account: u32, manner: Manner) -> u32 {
        let number = u32::try_from(self.endpoints.len()).unwrap() + 1;
        self.endpoints.push(EndpointPlan { number, account, manner });
        number
    }

    /// Has the store go back among many events, so that their numbers are given to others while they are in hand.
    fn numbers_again(&mut self, dice: &mut Dice, accounts: u64) {
        for nth in 0..100 {
            let at = Duration::from_secs(20) + Duration::from_millis(nth * 5);
            self.events.push((at, account(dice, accounts)));
        }
        self.events.sort();
        for _ in 0..2 {
            let steps = [Step::ReadDeliveries, Step::Commit, Step::News];
            let step = steps[usize::try_from(dice.below(3)).unwrap()];
            let nth = u32::try_from(1 + dice.below(12)).unwrap();
            self.faults.push(Aimed { step, nth, blow: Blow::GoesBack(1 << dice.below(6)) });
        }
    }

    fn deed(&self, dice: &mut Dice, accounts: u64) -> Deed {
        let nth = usize::try_from(dice.below(self.endpoints.len() as u64)).unwrap();
        let endpoint = self.endpoints[nth].number;
        let rate = u32::try_from(dice.below(4)).unwrap();
        let account = account(dice, accounts);
        match dice.below(21) {
            0 | 1 => Deed::Pause(endpoint),
            2 | 3 => Deed::Enable(endpoint),
            4 | 5 => Deed::Move(endpoint),
            6..=8 => Deed::Recover(endpoint),
            9 => Deed::Redeliver(endpoint),
            10 => Deed::Abandon(endpoint),
            11 => Deed::LimitAll(rate),
            12 => Deed::LimitAccount(account, rate),
            13 => Deed::LimitEndpoint(endpoint, rate),
            14 | 15 => Deed::Hold(account, 1 + dice.below(100)),
            16 | 17 => Deed::Kill(dice.bits()),
            18 => Deed::Still(dice.bits(), 1 + dice.below(15)),
            19 => Deed::Clock(dice.bits(), 1 + dice.below(90)),
            _ => Deed::Drain(dice.bits()),
        }
    }

    /// Returns how long an attempt of an account whose receivers are all good may wait.
    pub(crate) fn patience(&self) -> Duration {
        match self.faults.is_empty() && !self.deeds.iter().any(|(_, deed)| deed.delays()) {
            true => Duration::from_secs(2),
            false => Duration::from_secs(180),
        }
    }

    /// Tells whether an operator holds something back.
    pub(crate) fn is_limited(&self) -> bool {
        let limits = |deed: &Deed| {
            matches!(deed, Deed::LimitAll(_) | Deed::LimitAccount(..) | Deed::LimitEndpoint(..))
        };
        self.deeds.iter().any(|(_, deed)| limits(deed))
    }

    pub(crate) fn size(&self) -> usize {
        let lists = self.endpoints.len() + self.events.len() + self.deeds.len() + self.faults.len();
        lists + self.senders
    }

    /// Tells whether the store goes back.
    pub(crate) fn goes_back(&self) -> bool {
        self.faults.iter().any(|aimed| matches!(aimed.blow, Blow::GoesBack(_)))
            || self.deeds.iter().any(|(_, deed)| matches!(deed, Deed::GoBack(_)))
    }
}

impl Deed {
    /// Tells whether attempts may be delayed by it.
    fn delays(&self) -> bool {
        !matches!(self, Self::Move(_) | Self::Redeliver(_) | Self::Start)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (endpoints, events) = (self.endpoints.len(), self.events.len());
        write!(
            f,
            "seed {}: {} senders, {endpoints} endpoints, {events} events, deeds {:?}, faults {:?}",
            self.seed, self.senders, self.deeds, self.faults
        )
    }
}

fn manner(dice: &mut Dice) -> Manner {
    match dice.below(16) {
        0..=6 => Manner::Good,
        7 => Manner::Slow,
        8 => Manner::Silent,
        9 => Manner::Failing,
        10 => Manner::Refusing,
        11 => Manner::GoneBetween(instant(dice), END),
        12 | 13 => Manner::Flaky(10 + dice.below(80)),
        _ => {
            let (one, other) = (instant(dice), instant(dice));
            Manner::DownBetween(one.min(other), one.max(other))
        }
    }
}

fn account(dice: &mut Dice, accounts: u64) -> u32 {
    u32::try_from(1 + dice.below(accounts)).unwrap()
}

/// Half of it happens within an hour, so that it meets.
fn instant(dice: &mut Dice) -> Duration {
    let last = if dice.chance(50) { 3_600_000 } else { LAST_EVENT.as_millis().try_into().unwrap() };
    Duration::from_millis(dice.below(last))
}
