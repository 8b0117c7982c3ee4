//! EVT-8, D-46, D-80: each event processed once, by what a store keeps of it.

use std::time::Duration;

use call_assistant::webhook::WebhookResponse;
use call_assistant::webhook::receiver::{ActiveClaim, ClaimOutcome, InboxEntry};

use super::{busy, claim, duplicate, is_busy, is_duplicate, taken};
use crate::dice::{Dice, HOUR, MINUTE, SECOND, at};

/// All states of an entry and everything that can happen to each.
#[test]
fn the_life_of_an_entry() {
    let (now, before, after) = (at(0), at(59_999), at(60_000));
    let claimed = taken(claim(None, ActiveClaim::LEASE, now));
    let entry = claimed.entry();
    busy(claim(Some(&entry), ActiveClaim::LEASE, before));
    // Whoever took it has died.
    let again = taken(claim(Some(&entry), ActiveClaim::LEASE, after)).entry();
    busy(claim(Some(&again), ActiveClaim::LEASE, after));
    // Or said that it failed.
    let failed = claimed.failed().0;
    let claimed = taken(claim(Some(&failed), ActiveClaim::LEASE, now));

    let done = claimed.done(now).0;
    for instant in [now, after, at(i64::from(i32::MAX))] {
        duplicate(claim(Some(&done), ActiveClaim::LEASE, instant));
    }

    for entry in [entry, failed] {
        assert!(!entry.is_deletable(at(i64::from(i32::MAX) * 1_000)), "{entry:?}");
    }
    let seen = (ActiveClaim::LEASE.as_secs(), InboxEntry::RETENTION.as_secs());
    assert_eq!(seen, (60, 2_678_400), "a minute; 31 days");
    let last = now.checked_add(InboxEntry::RETENTION).unwrap();
    assert!(!done.is_deletable(last));
    assert!(done.is_deletable(last.checked_add(Duration::from_nanos(1)).unwrap()));
}

/// A store keeps entries as text.
#[test]
fn an_entry_as_it_is_stored() {
    let claimed = || taken(claim(None, ActiveClaim::LEASE, at(0)));
    let taken = |at, until| format!(r#"{{"taken":{{"at":"{at}","until":"{until}"}}}}"#);
    let year_0 = "0000-01-01T00:00:00Z";
    for (entry, text) in [
        (claimed().entry(), taken("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z")),
        (claimed().done(at(0)).0, r#"{"done":{"at":"2026-01-01T00:00:00Z"}}"#.into()),
        (claimed().failed().0, taken(year_0, year_0)),
    ] {
        assert_eq!(serde_json::to_string(&entry).unwrap(), text);
        assert_eq!(serde_json::from_str::<InboxEntry>(&text).unwrap(), entry, "{text}");
    }
}

/// D-80: a claim that ends more than twice its own length after `now` counts as expired, whatever
/// lease the copy that arrives would get.
#[test]
fn a_claim_of_a_wrong_clock_is_bounded() {
    const YEAR: i64 = 365 * 24 * HOUR;
    for (what, taken_at, lease, now, busy) in [
        ("the clock stands", 0, MINUTE, 0, true),
        ("back by less than a lease", 0, MINUTE, -MINUTE + 1, true),
        ("back by a lease", 0, MINUTE, -MINUTE, true),
        ("back by more than a lease", 0, MINUTE, -MINUTE - 1, false),
        ("taken by a clock a year ahead", YEAR, MINUTE, 0, false),
        ("taken by a clock a year behind", -YEAR, MINUTE, 0, false),
        ("forward within the lease", 0, MINUTE, MINUTE - 1, true),
        ("forward past the lease", 0, MINUTE, MINUTE, false),
        ("a long lease", 0, 3 * HOUR, MINUTE, true),
        ("a long lease, back by a part of it", 0, 3 * HOUR, -2 * HOUR, true),
        ("a short lease, back by more than it", 0, SECOND, -2 * SECOND, false),
    ] {
        let lease = Duration::from_millis(u64::try_from(lease).unwrap());
        let entry = taken(claim(None, lease, at(taken_at))).entry();
        for other in [Duration::ZERO, ActiveClaim::LEASE, Duration::MAX] {
            let claim = claim(Some(&entry), other, at(now));
            assert_eq!(is_busy(&claim), busy, "{what}: {claim:?}");
        }
    }
    // Held to the end of time, and no longer than that.
    let claimed = taken(claim(None, Duration::MAX, at(0)));
    busy(claim(Some(&claimed.entry()), ActiveClaim::LEASE, at(YEAR)));
    // What is done stays done, whatever the clock says.
    let done = claimed.done(at(YEAR)).0;
    for now in [-YEAR, 0, YEAR] {
        let claim = claim(Some(&done), ActiveClaim::LEASE, at(now));
        assert!(is_duplicate(&claim), "{now}: {claim:?}");
    }
}

/// Receivers that crash before or after acting, or fail, or are slow, while copies keep coming:
/// every event is acted on at least once, twice only where a process died in between, and what has
/// been done is never done again.
#[test]
fn every_event_is_acted_on() {
    for seed in 0..2_000 {
        let mut dice = Dice::new(seed);
        let mut row: Option<InboxEntry> = None;
        let (mut acted, mut died, mut done) = (0, 0, false);
        let mut busy_until = 0;
        // The service's six attempts, and one manual attempt, which meets a receiver that works.
        for wait in [0, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, 24 * HOUR] {
            let millis = wait + dice.up_to(SECOND);
            let now = at(millis);
            match claim(row.as_ref(), ActiveClaim::LEASE, now) {
                ClaimOutcome::Process(claimed) => {
                    assert!(!done && millis >= busy_until, "seed {seed}");
                    row = Some(claimed.entry());
                    busy_until = millis + MINUTE;
                    let fate = if wait == 24 * HOUR { 3 } else { dice.up_to(4) };
                    match fate {
                        0 => {}
                        1 => {
                            acted += 1;
                            died += 1;
                        }
                        2 => {
                            row = Some(claimed.failed().0);
                            busy_until = 0;
                        }
                        _ => {
                            acted += 1;
                            done = true;
                            row = Some(claimed.done(now).0);
                        }
                    }
                }
                // Whoever took it may still be at work, or else its next copy is acted on.
                ClaimOutcome::Answer(WebhookResponse::Unavailable) => {
                    assert!(!done && millis < busy_until, "seed {seed}");
                }
                ClaimOutcome::Answer(_) => assert!(done, "seed {seed}"),
            }
        }
        assert!(done, "seed {seed}: never acted on");
        assert_eq!(acted, died + 1, "seed {seed}");
    }
}
