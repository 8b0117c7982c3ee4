//! RATE-4, RATE-5, D-31: when a request is made again, and how to need no second one.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::rest::client::{Action, ClientError, Pace, ResponseHead, Retry, RetryAfter};
use call_assistant::rest::{ErrorCode, GetAccount, Quota};

use support::corpus;

use super::replies::client;

use crate::dice::{Dice, at};

const NOW: i64 = 5_000_000;
const LEAST: [u8; 8] = [0; 8];
const MOST: [u8; 8] = [0xff; 8];

/// A proxy's response.
fn answered(status: u16) -> ClientError {
    client().read(&GetAccount, ResponseHead::new(status), b"?").unwrap_err()
}

/// A service's response.
fn refused(status: u16, code: &ErrorCode) -> ClientError {
    let body = format!(r#"{{"error":{{"code":"{code}"}}}}"#);
    client().read(&GetAccount, ResponseHead::new(status), body.as_bytes()).unwrap_err()
}

#[track_caller]
fn wait(retry: &Retry, failure: &ClientError, tried: u32, random: [u8; 8]) -> Option<Duration> {
    retry.wait(failure, tried, random, at(NOW))
}

/// RATE-5: every status there is.
#[test]
fn which_statuses_are_worth_another_try() {
    for status in 100..1000_u16 {
        let expected = matches!(status, 408 | 425 | 429 | 500 | 502..=504 | 506..600);
        let failure = answered(status);
        assert_eq!(failure.action() == Action::Retry, expected, "{status}");
        assert_eq!(wait(&Retry::new(), &failure, 1, LEAST).is_some(), expected, "{status}");
    }
    assert_eq!(answered(0).action(), Action::Retry);
}

/// Section 7's table, and D-3's code: behind a proxy that changed the status, the code still holds.
#[test]
fn which_codes_are_worth_another_try() {
    for code in ErrorCode::KNOWN {
        let transient = matches!(code, ErrorCode::RateLimitExceeded | ErrorCode::InternalError);
        let status = code.status().unwrap().as_u16();
        assert_eq!(refused(status, code).action() == Action::Retry, transient, "{code}");
        assert_eq!(refused(503, code).action() == Action::Retry, transient, "{code}");
        assert_ne!(refused(400, code).action(), Action::Retry, "{code}");
    }
    let unknown = ErrorCode::from("not_yet_invented");
    assert_eq!(refused(503, &unknown).action(), Action::Retry);
    assert_ne!(refused(403, &unknown).action(), Action::Retry);
}

#[test]
fn the_backoff_doubles_and_only_stretches() {
    let retry = Retry::new().with_tries(u32::MAX);
    let failure = answered(500);
    for (tried, least) in [(1, 500), (2, 1_000), (4, 4_000), (7, 30_000), (u32::MAX, 30_000)] {
        let least = Duration::from_millis(least);
        assert_eq!(wait(&retry, &failure, tried, LEAST), Some(least));
        let most = wait(&retry, &failure, tried, MOST).unwrap();
        assert!(most > least * 199 / 100 && most < least * 2, "{tried}: {most:?}");
    }
}

#[test]
fn tries_run_out() {
    let failure = ClientError::no_response("reset");
    assert_eq!(Retry::default(), Retry::new());
    assert!(wait(&Retry::new(), &failure, 4, LEAST).is_some());
    assert_eq!(wait(&Retry::new(), &failure, 5, LEAST), None);
    assert_eq!(wait(&Retry::new().with_tries(1), &failure, 1, LEAST), None);
    // The extremes are ordinary: nothing overflows.
    let endless = Retry::new().with_tries(u32::MAX).with_backoff(Duration::MAX, Duration::MAX);
    assert_eq!(wait(&endless, &failure, u32::MAX, MOST), Some(Duration::MAX));
    let none = Retry::new().with_backoff(Duration::ZERO, Duration::ZERO);
    assert_eq!(wait(&none, &failure, 1, MOST), Some(Duration::ZERO));
}

/// RATE-4, D-31: what `Retry-After` says is the least, an hour at most, and the backoff comes on top.
#[test]
fn retry_after_is_honoured_capped_and_never_undercut() {
    let retry = Retry::new();
    assert_eq!(Retry::MAX_RETRY_AFTER.as_secs(), 3_600);
    for case in corpus(include_str!("../../vectors/waits.json")) {
        let now = Timestamp::from_unix(case["now"].as_i64().unwrap()).unwrap();
        let mut head = ResponseHead::new(429);
        (head.retry_after, head.date) = (case["header"].as_str(), case["date"].as_str());
        let failure = client().read(&GetAccount, head, b"").unwrap_err();
        assert_eq!(failure.retry_after.is_some(), !case["wait"].is_null(), "{case}");
        let told = Duration::from_secs(case["wait"].as_u64().unwrap_or_default());
        let least = told + Duration::from_millis(500);
        assert_eq!(retry.wait(&failure, 1, LEAST, now), Some(least), "{case}");
        let most = retry.wait(&failure, 1, MOST, now).unwrap();
        assert!(most > least && most < least + Duration::from_millis(500), "{case}");
        assert_eq!(retry.wait(&failure, 5, LEAST, now), None, "{case}");
    }
    // It is no reason to try again what would be refused again.
    let mut refused = answered(403);
    refused.retry_after = RetryAfter::parse("7");
    assert_eq!(wait(&retry, &refused, 1, LEAST), None);
}

/// D-31: a date in the three forms of RFC 9110, and nothing that is like one.
#[test]
fn the_dates_of_retry_after() {
    for case in corpus(include_str!("../../vectors/dates.json")) {
        let date = case["seconds"].as_i64().map(|at| Timestamp::from_unix(at).unwrap());
        let text = case["text"].as_str().unwrap();
        assert_eq!(RetryAfter::parse(text), date.map(RetryAfter::At), "{text:?}");
    }
    // A second 60 is that before it, and more seconds than fit are all that do.
    let leap = "Sat, 31 Dec 2016 23:59:60 GMT";
    let before = Timestamp::parse("2016-12-31T23:59:59Z").unwrap();
    assert_eq!(RetryAfter::parse(leap), Some(RetryAfter::At(before)));
    assert_eq!(RetryAfter::parse("18446744073709551616"), Some(RetryAfter::Seconds(u64::MAX)));
}

/// No span of 60 seconds at the service sees more requests than the quota, although some are held
/// up on the way by as much as five seconds.
#[test]
fn a_paced_client_never_meets_a_429() {
    for (quota, clients) in [(Quota::READS, 1), (Quota::ACCOUNT, 1), (Quota::READS, 3)] {
        for seed in 0..20 {
            let mut dice = Dice::new(seed);
            let mut arrivals = Vec::new();
            for _ in 0..clients {
                let mut pace = Pace::shared(quota, clients);
                let mut now = dice.up_to(10_000);
                for _ in 0..2_000 {
                    let wait = pace.turn(at(now));
                    // A wait is slept at least as long as it says.
                    now += i64::try_from(wait.as_millis()).unwrap() + 1;
                    arrivals.push(now + dice.span(5_000));
                    now += if dice.chance(1) { dice.span(100_000) } else { dice.span(50) };
                }
            }
            arrivals.sort_unstable();
            let quota = usize::from(quota.per_minute());
            for window in arrivals.windows(quota + 1) {
                assert!(window[quota] - window[0] >= 60_000, "seed {seed}");
            }
        }
    }
}

#[test]
fn turns_can_be_taken_ahead() {
    let mut pace = Pace::new(Quota::ACCOUNT);
    let waits: Vec<_> = (0..3).map(|_| pace.turn(at(0)).as_millis()).collect();
    assert_eq!(waits, [0, 1_111, 2_222]);
    // Time that passes without a request is not saved up.
    let waits: Vec<_> = (0..2).map(|_| pace.turn(at(600_000)).as_millis()).collect();
    assert_eq!(waits, [0, 1_111]);
}

#[test]
fn a_stored_pace_is_checked_when_it_is_read() {
    let mut pace = Pace::shared(Quota::ACCOUNT, u32::MAX);
    let before = pace.clone();
    let _ = pace.turn(at(0));
    let text = serde_json::to_string(&pace).unwrap();
    for paced in [Pace::new(Quota::READS), before, pace] {
        let text = serde_json::to_string(&paced).unwrap();
        assert_eq!(serde_json::from_str::<Pace>(&text).unwrap(), paced);
    }
    for (part, wrong, expected) in [
        (r#""secs":86400"#, r#""secs":86401"#, "gap is more than a day"),
        (r#""free_at":"2026"#, r#""free_at":"2025"#, "free_at is not at latest or after it"),
        (r#""latest":"2026-01-01T00:00:00Z""#, r#""latest":null"#, "free_at is not at latest"),
    ] {
        let wrong = text.replace(part, wrong);
        let error = serde_json::from_str::<Pace>(&wrong).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{wrong}: {error}");
    }
}

/// A clock that was wrong and is set right does not put a client to sleep for years.
#[test]
fn a_clock_that_is_set_back_takes_the_turns_along() {
    let ahead = 20 * 365 * 86_400_000;
    let mut pace = Pace::new(Quota::ACCOUNT);
    let mut waits = |millis| pace.turn(at(millis)).as_millis();
    assert_eq!([waits(ahead), waits(ahead)], [0, 1_111]);
    assert_eq!([waits(0), waits(0), waits(3_334)], [2_222, 3_333, 1_110]);
    // By a minute or less, it has only been read in another order.
    assert_eq!([waits(100_000), waits(40_000), waits(39_999)], [0, 61_111, 2_222]);
}
