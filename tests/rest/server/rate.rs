//! One sliding window of the table: exactness, and clocks that step back. `tests/bytes/src/pages.rs` has the
//! property.

use std::num::NonZeroU16;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::CredentialId;
use call_assistant::rest::Quota;
use call_assistant::rest::server::{RateLimitError, RateWindows};
use support::corpus;

use crate::{at, second};

pub(super) const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;

pub(super) fn quota(per_minute: u16) -> Quota {
    Quota::READS.with_per_minute(NonZeroU16::new(per_minute).unwrap())
}

/// Checks a request of the one credential that most tests have.
fn check(windows: &mut RateWindows, quota: Quota, now: Timestamp) -> Result<(), RateLimitError> {
    windows.check(&CredentialId::parse("cred_1").unwrap(), quota, now)
}

fn wait_of(checked: Result<(), RateLimitError>) -> Duration {
    let exceeded = checked.unwrap_err();
    assert!(exceeded.to_string().starts_with("the quota is used up"), "{exceeded}");
    exceeded.wait
}

// RATE-1, RATE-2, RATE-3: in a burst, and again in the next minute, where a bucket would by now
// have let twice as many through.
#[test]
fn the_specified_quotas() {
    for (quota, per_minute, name) in [(Quota::ACCOUNT, 60, "account"), (Quota::READS, 600, "reads")]
    {
        assert_eq!((quota.per_minute(), quota.name()), (per_minute, name));
        let mut window = RateWindows::new(2);
        let mut admitted_by = |nanos| {
            let mut admitted = 0;
            while check(&mut window, quota, at(nanos)).is_ok() {
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
        let mut window = RateWindows::new(2);
        for asked in case["asked"].as_array().unwrap() {
            let now = at(asked["at"].as_u64().unwrap());
            let checked = check(&mut window, quota(per_minute), now);
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
    let mut window = RateWindows::new(2);
    assert!(window.is_empty());
    for admitted in [0, 10, 75] {
        assert_eq!(check(&mut window, quota(3), second(admitted)), Ok(()));
        assert!(!window.is_empty(), "{admitted}");
    }
    // The window is idle 60 seconds after the newest admission: a newcomer's check forgets it then.
    for (newcomer, now, windows) in [("cred_2", 134, 2), ("cred_3", 135, 2)] {
        let newcomer = CredentialId::parse(newcomer).unwrap();
        assert_eq!(window.check(&newcomer, quota(3), second(now)), Ok(()));
        assert_eq!(window.len(), windows, "{now}");
    }
}

// A clock that steps back: room neither appears nor stays away for long.
#[test]
fn clocks_step_back() {
    let full = || {
        let mut window = RateWindows::new(2);
        assert_eq!(check(&mut window, quota(2), second(1_000)), Ok(()));
        assert_eq!(check(&mut window, quota(2), second(1_010)), Ok(()));
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
        assert_eq!(wait_of(check(&mut window, quota(2), second(now))).as_secs(), wait, "{now}");
        let exceeded = check(&mut window, quota(2), at(now * SECOND + SECOND - 1)).unwrap_err();
        assert_eq!(exceeded.retry_after(), wait, "{now}");
        let early = at((now + wait) * SECOND - 1);
        assert_eq!(wait_of(check(&mut window, quota(2), early)).as_nanos(), 1, "{now}");
        assert_eq!(check(&mut window, quota(2), second(now + wait)), Ok(()), "{now}");
    }
    // One clock years ahead once, and the others are not locked out.
    let mut window = RateWindows::new(2);
    assert_eq!(check(&mut window, quota(1), Timestamp::MAX), Ok(()));
    assert_eq!(wait_of(check(&mut window, quota(1), second(0))).as_secs(), 60);
    assert_eq!(check(&mut window, quota(1), second(60)), Ok(()));
}

// The ends of time, both ways.
#[test]
fn instants_at_the_ends() {
    for (first, then) in [
        (Timestamp::MIN, Timestamp::MIN),
        (Timestamp::MAX, Timestamp::MAX),
        (Timestamp::MAX, Timestamp::MIN),
    ] {
        let mut window = RateWindows::new(2);
        assert_eq!(check(&mut window, quota(2), first), Ok(()));
        assert_eq!(check(&mut window, quota(2), then), Ok(()));
        assert_eq!(wait_of(check(&mut window, quota(2), then)).as_secs(), 60);
    }
    let mut window = RateWindows::new(2);
    assert_eq!(check(&mut window, quota(1), Timestamp::MIN), Ok(()));
    assert_eq!(check(&mut window, quota(1), Timestamp::MAX), Ok(()));
}
