//! One sliding window of the table: exactness, and clocks that step back.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::CredentialId;
use call_assistant::rest::Quota;
use call_assistant::rest::server::{RateLimitError, RateWindows};
use proptest::prelude::*;
use support::corpus;

use crate::{at, second};

pub(super) const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;

pub(super) fn quota(per_minute: u16) -> Quota {
    Quota::READS.with_per_minute(NonZeroU16::new(per_minute).unwrap())
}

/// The window of one credential, and what was asked of it, so that it can be had once more.
struct Window {
    credential: CredentialId,
    windows: RateWindows,
    asked: Vec<(Quota, Timestamp)>,
}

impl Window {
    fn new() -> Self {
        let credential = CredentialId::parse("cred_1").unwrap();
        Self { credential, windows: RateWindows::new(2), asked: Vec::new() }
    }

    fn check(&mut self, quota: Quota, now: Timestamp) -> Result<(), RateLimitError> {
        self.asked.push((quota, now));
        self.windows.check(&self.credential, quota, now)
    }

    fn copy(&self) -> Self {
        let mut copy = Self::new();
        for (quota, now) in &self.asked {
            let _ = copy.check(*quota, *now);
        }
        copy
    }
}

fn wait_of(checked: Result<(), RateLimitError>) -> Duration {
    let exceeded = checked.unwrap_err();
    assert!(exceeded.to_string().starts_with("the quota is used up"), "{exceeded}");
    exceeded.wait
}

/// The same, as one would write it first: every instant kept as it is.
#[derive(Clone, Default)]
struct Naive(VecDeque<i128>);

impl Naive {
    fn check(&mut self, per_minute: u16, now: i128) -> Result<(), i128> {
        let minute = i128::from(MINUTE);
        let newest = self.0.back().copied().unwrap_or(now);
        if newest - now > minute {
            self.0.iter_mut().for_each(|admitted| *admitted -= newest - now);
        }
        let counts_as = now.max(self.0.back().copied().unwrap_or(now));
        self.0.retain(|admitted| counts_as - admitted < minute);
        match self.0.len().checked_sub(usize::from(per_minute)) {
            None => {
                self.0.push_back(counts_as);
                Ok(())
            }
            Some(older) => Err(self.0[older] + minute - now),
        }
    }
}

// RATE-1, RATE-2, RATE-3: in a burst, and again in the next minute, where a bucket would by now
// have let twice as many through.
#[test]
fn the_specified_quotas() {
    for (quota, per_minute, name) in [(Quota::ACCOUNT, 60, "account"), (Quota::READS, 600, "reads")]
    {
        assert_eq!((quota.per_minute(), quota.name()), (per_minute, name));
        let mut window = Window::new();
        let mut admitted_by = |nanos| {
            let mut admitted = 0;
            while window.check(quota, at(nanos)).is_ok() {
                admitted += 1;
            }
            admitted
        };
        assert_eq!(admitted_by(0), per_minute);
        assert_eq!(admitted_by(MINUTE / 2), 0);
        assert_eq!(admitted_by(MINUTE - 1), 0);
        assert_eq!(admitted_by(MINUTE), per_minute);
        assert_eq!(admitted_by(10 * MINUTE), per_minute);
    }
}

// D-30: as soon as 60 seconds have passed since the oldest of the last N, one by one; what is refused costs nothing.
// D-31: whole seconds, rounded up, at least 1.
#[test]
fn each_window_of_the_corpus_admits_and_refuses_as_it_says() {
    for case in corpus(include_str!("../../vectors/rates.json")) {
        let per_minute = u16::try_from(case["per_minute"].as_u64().unwrap()).unwrap();
        let mut window = Window::new();
        for asked in case["asked"].as_array().unwrap() {
            let now = at(asked["at"].as_u64().unwrap());
            let checked = window.check(quota(per_minute), now);
            let told = checked.map_err(|error| (error.wait, error.retry_after()));
            let expected = asked["wait"].as_u64().map(Duration::from_nanos);
            let expected = expected.map(|wait| (wait, asked["retry_after"].as_u64().unwrap()));
            assert_eq!(told, expected.map_or(Ok(()), Err), "{per_minute} a minute: {asked}");
        }
    }
}

// D-30
#[test]
fn an_idle_window_is_forgotten() {
    let mut window = Window::new();
    for admitted in [0, 10, 75] {
        assert_eq!(window.check(quota(3), second(admitted)), Ok(()));
    }
    // The window is idle 60 seconds after the newest admission: a newcomer's check forgets it then.
    for (newcomer, now, windows) in [("cred_2", 134, 2), ("cred_3", 135, 2)] {
        let newcomer = CredentialId::parse(newcomer).unwrap();
        assert_eq!(window.windows.check(&newcomer, quota(3), second(now)), Ok(()));
        assert_eq!(window.windows.len(), windows, "{now}");
    }
}

#[test]
fn a_refusal_reads_well() {
    let mut window = Window::new();
    window.check(quota(1), at(0)).unwrap();
    let exceeded = window.check(quota(1), at(SECOND / 2)).unwrap_err();
    assert_eq!(exceeded.to_string(), "the quota is used up, a request is admitted in 59.5s");
}

// A quota that changes applies at once, to what was admitted before.
#[test]
fn quotas_change() {
    let mut window = Window::new();
    for admitted in [0, 10, 20, 30] {
        assert_eq!(window.check(quota(4), second(admitted)), Ok(()));
    }
    assert_eq!(wait_of(window.check(quota(4), second(30))).as_secs(), 30);
    assert_eq!(wait_of(window.check(quota(3), second(30))).as_secs(), 40);
    assert_eq!(wait_of(window.check(quota(1), second(30))).as_secs(), 60);
    assert_eq!(window.check(quota(5), second(30)), Ok(()));
}

// A clock that steps back: room neither appears nor stays away for long.
#[test]
fn clocks_step_back() {
    let full = || {
        let mut window = Window::new();
        assert_eq!(window.check(quota(2), second(1_000)), Ok(()));
        assert_eq!(window.check(quota(2), second(1_010)), Ok(()));
        window
    };
    for (now, wait) in [
        (1_010, 50),
        (1_000, 60),
        (951, 109),
        (950, 110), // 60 seconds back: the last step that may be a difference between hosts
        (949, 50),  // more: now counts as the instant of the newest
        (0, 50),
    ] {
        let mut window = full();
        assert_eq!(wait_of(window.check(quota(2), second(now))).as_secs(), wait, "{now}");
        assert!(wait_of(window.check(quota(2), at((now + wait) * SECOND - 1))).as_nanos() == 1);
        assert_eq!(window.check(quota(2), second(now + wait)), Ok(()), "{now}");
    }
    // One clock years ahead once, and the others are not locked out.
    let mut window = Window::new();
    assert_eq!(window.check(quota(1), Timestamp::MAX), Ok(()));
    assert_eq!(wait_of(window.check(quota(1), second(0))).as_secs(), 60);
    assert_eq!(window.check(quota(1), second(60)), Ok(()));
}

// The ends of time, both ways.
#[test]
fn instants_at_the_ends() {
    for (first, then) in [
        (Timestamp::MIN, Timestamp::MIN),
        (Timestamp::MAX, Timestamp::MAX),
        (Timestamp::MAX, Timestamp::MIN),
    ] {
        let mut window = Window::new();
        assert_eq!(window.check(quota(2), first), Ok(()));
        assert_eq!(window.check(quota(2), then), Ok(()));
        assert_eq!(wait_of(window.check(quota(2), then)).as_secs(), 60);
    }
    let mut window = Window::new();
    assert_eq!(window.check(quota(1), Timestamp::MIN), Ok(()));
    assert_eq!(window.check(quota(1), Timestamp::MAX), Ok(()));
}

/// Steps between arrivals: none, a nanosecond, moments, and about as long as the window.
fn any_step() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 0..SECOND, 0..30 * SECOND, MINUTE - 2..MINUTE + 2, Just(MINUTE),]
}

/// How far a clock is set back, mostly not at all.
fn any_step_back() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => Just(0),
        1 => 0..30 * SECOND,
        1 => MINUTE - 1..MINUTE + 2,
        1 => 0..100 * MINUTE,
    ]
}

proptest! {
    // D-30: no span of 60 seconds admits more than N, for any sequence of arrivals; in real time,
    // also while the clock is set back again and again.
    #[test]
    fn no_minute_admits_more(
        per_minute in 1..8_u16,
        arrivals in proptest::collection::vec((any_step(), any_step_back()), 0..200),
    ) {
        let mut window = Window::new();
        let (mut real, mut clock) = (0, 1_000_000 * MINUTE);
        let mut admitted = Vec::new();
        for (step, back) in arrivals {
            real += step;
            clock = clock + step - back;
            if window.check(quota(per_minute), at(clock)).is_ok() {
                admitted.push(real);
            }
        }
        for span in admitted.windows(usize::from(per_minute) + 1) {
            prop_assert!(span[span.len() - 1] - span[0] >= MINUTE);
        }
    }

    // D-30, D-31: what is refused is admitted once the wait has passed, and not before.
    #[test]
    fn the_wait_is_exact(
        per_minute in 1..8_u16,
        arrivals in proptest::collection::vec((any_step(), any_step_back()), 0..100),
    ) {
        let mut window = Window::new();
        let mut clock = 1_000_000 * MINUTE;
        for (step, back) in arrivals {
            clock = clock + step - back;
            if let Err(exceeded) = window.check(quota(per_minute), at(clock)) {
                let wait = exceeded.wait.as_nanos() as u64;
                prop_assert!((1..=2 * MINUTE).contains(&wait));
                let too_soon = window.copy().check(quota(per_minute), at(clock + wait - 1));
                prop_assert_eq!(wait_of(too_soon), Duration::from_nanos(1));
                prop_assert_eq!(window.copy().check(quota(per_minute), at(clock + wait)), Ok(()));
                let retry_after = exceeded.retry_after();
                prop_assert!(retry_after >= 1 && retry_after * SECOND >= wait);
                prop_assert!(retry_after == 1 || (retry_after - 1) * SECOND < wait);
            }
        }
    }

    // Against the second implementation, with quotas that change and clocks that jump about.
    #[test]
    fn as_the_naive_window(
        arrivals in proptest::collection::vec(
            (any_step(), any_step_back(), prop_oneof![9 => Just(5_u16), 1 => 1..12_u16]),
            0..300,
        ),
    ) {
        let (mut window, mut naive) = (Window::new(), Naive::default());
        let mut clock = 1_000_000 * MINUTE;
        for (step, back, per_minute) in arrivals {
            clock = clock + step - back;
            let ours = window.check(quota(per_minute), at(clock));
            let ours = ours.map_err(|exceeded| exceeded.wait.as_nanos() as i128);
            prop_assert_eq!(ours, naive.check(per_minute, i128::from(clock)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    // The whole of a large quota, so that long and short gaps meet in one window.
    #[test]
    fn as_the_naive_window_in_bulk(
        steps in proptest::collection::vec(prop_oneof![0..1_000_u64, 0..SECOND / 4], 1_000..2_000),
    ) {
        let (mut window, mut naive) = (Window::new(), Naive::default());
        let mut clock = 0;
        for step in steps {
            clock += step;
            let ours = window.check(Quota::READS, at(clock));
            let ours = ours.map_err(|exceeded| exceeded.wait.as_nanos() as i128);
            prop_assert_eq!(ours, naive.check(600, i128::from(clock)));
        }
    }
}
