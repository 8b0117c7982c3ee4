//! The map of windows: each as if it were alone, idle ones forgotten, never more than its room.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use call_assistant::id::CredentialId;
use call_assistant::rest::Quota;
use call_assistant::rest::server::{RateLimitError, RateWindows};
use proptest::prelude::*;

use super::rate::{SECOND, quota};
use crate::{at, second};

/// Whether a refusal is for want of room, and not of quota.
fn is_for_room(refused: &RateLimitError) -> bool {
    let (room, quota) = ("the table of rate windows is full", "the quota is used up");
    let said = refused.to_string();
    assert_ne!(said.starts_with(room), said.starts_with(quota), "{said}");
    said.starts_with(room)
}

fn credential(number: u64) -> CredentialId {
    CredentialId::parse(&format!("cred_{number}")).unwrap()
}

// RATE-1, RATE-2: the two quotas of a credential are counted apart, as are credentials.
#[test]
fn quotas_and_credentials_are_apart() {
    let mut windows = RateWindows::new(10);
    let mut check = |number, quota, now| windows.check(&credential(number), quota, now);
    for _ in 0..60 {
        assert_eq!(check(1, Quota::ACCOUNT, second(0)), Ok(()));
    }
    let exceeded = check(1, Quota::ACCOUNT, at(SECOND / 2)).unwrap_err();
    assert_eq!(exceeded.to_string(), "the quota is used up, a request is admitted in 59.5s");
    // Another number for the same quota is the same window.
    let raised = Quota::ACCOUNT.with_per_minute(NonZeroU16::new(61).unwrap());
    for (number, quota) in [(1, Quota::READS), (2, Quota::ACCOUNT), (1, raised)] {
        assert_eq!(check(number, quota, at(SECOND / 2)), Ok(()), "{number} {quota:?}");
    }
    assert_eq!(format!("{windows:?}"), "RateWindows { len: 3, max: 10, .. }");
}

// Nobody shares a window, however alike the ids.
#[test]
fn every_credential_has_its_own_window() {
    let mut windows = RateWindows::new(1_000_000);
    for number in 0..20_000_u128 {
        let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834);
        for id in [
            CredentialId::from_random(number.to_be_bytes()),
            CredentialId::from_random((number << 64).to_be_bytes()),
            CredentialId::from_random((!random).to_be_bytes()),
        ] {
            let checked = windows.check(&id, quota(if number == 0 { 2 } else { 1 }), second(0));
            assert_eq!(checked, Ok(()), "{id}");
        }
    }
    assert_eq!(windows.len(), 3 * 20_000 - 1);
}

// A flood of keys: no more windows than there is room, none dropped that could still refuse, and
// who has one notices nothing.
#[test]
fn a_flood_of_keys_meets_the_bound() {
    let mut windows = RateWindows::new(1_000);
    for number in 0..1_000 {
        assert_eq!(windows.check(&credential(number), quota(1), at(number)), Ok(()));
    }
    for number in 1_000..5_000 {
        let exceeded = windows.check(&credential(number), quota(1), second(10)).unwrap_err();
        assert_eq!((is_for_room(&exceeded), exceeded.retry_after()), (true, 50));
        assert_eq!(windows.len(), 1_000);
    }
    for number in 0..1_000 {
        let exceeded = windows.check(&credential(number), quota(1), second(20)).unwrap_err();
        assert!(!is_for_room(&exceeded));
        assert_eq!(windows.check(&credential(number), quota(2), second(20)), Ok(()));
    }
    let exceeded = windows.check(&credential(1_000), quota(1), second(20)).unwrap_err();
    let words = "the table of rate windows is full, a slot may be free in 40s";
    assert_eq!(exceeded.to_string(), words);
    // All of them were admitted again meanwhile, so it has to wait for their second minute.
    // That takes some checks to find out: each looks at 64 of them.
    let checks = [(60, 1); 1].into_iter().chain([(61, 1); 15]).chain([(61, 19)]);
    for (check, (now, wait)) in checks.enumerate() {
        let exceeded = windows.check(&credential(1_000), quota(1), second(now)).unwrap_err();
        let refused = (is_for_room(&exceeded), exceeded.retry_after());
        assert_eq!(refused, (true, wait), "check {check}");
    }
    assert_eq!(windows.check(&credential(1_000), quota(1), second(80)), Ok(()));
}

// However few of a full map's windows are idle, and wherever they are: a newcomer gets the room.
#[test]
fn a_full_map_finds_the_one_that_is_idle() {
    for idle in 0..200 {
        let mut windows = RateWindows::new(200);
        let mut check = |number, now| windows.check(&credential(number), Quota::READS, second(now));
        let others = (0..200).filter(|number| *number != idle).map(|number| (number, 59));
        for (number, now) in (0..200).map(|number| (number, 0)).chain(others) {
            assert_eq!(check(number, now), Ok(()), "{idle}");
        }
        // 64 at a time.
        assert!((0..4).any(|_| check(200, 60).is_ok()), "{idle}");
        assert!(is_for_room(&check(201, 60).unwrap_err()), "{idle}");
        assert_eq!(windows.len(), 200);
    }
}

// Everybody waits for the check of a newcomer: it looks at 64 windows at most, however many there are.
#[test]
fn a_newcomer_looks_at_few_windows() {
    const WINDOWS: u64 = 10_000;
    let mut windows = RateWindows::new(WINDOWS as usize);
    let mut check = |number, now| windows.check(&credential(number), Quota::READS, now);
    // The last one to come due is the one that is not in use. Whoever finds that one at once has looked at
    // all of them.
    let others = |now| (1..WINDOWS).map(move |number| (number, now));
    for (number, now) in others(second(0)).chain([(0, at(1))]).chain(others(second(30))) {
        assert_eq!(check(number, now), Ok(()));
    }
    let mut refused = 0;
    while let Err(error) = check(WINDOWS, second(61)) {
        refused += 1;
        assert_eq!((is_for_room(&error), error.retry_after()), (true, 1), "{refused}");
        assert!(refused < WINDOWS, "a newcomer without an end");
    }
    let looks = WINDOWS.div_ceil(refused + 1);
    assert!((1..=64).contains(&looks), "{refused} refused, so {looks} looks at a time");
    // Nor does it look at more where none is idle.
    assert_eq!(windows.len(), WINDOWS as usize);
}

// Who falls silent is forgotten when others come: a few at a time, and more than come.
#[test]
fn idle_credentials_are_forgotten() {
    let mut windows = RateWindows::new(1_000_000);
    for number in 0..10_000 {
        assert_eq!(windows.check(&credential(number), Quota::READS, second(0)), Ok(()));
    }
    assert_eq!(windows.len(), 10_000);
    let mut before = windows.len();
    for newcomer in 0..4_000 {
        let now = at(60 * SECOND + newcomer * SECOND / 100);
        assert_eq!(windows.check(&credential(10_000 + newcomer), Quota::READS, now), Ok(()));
        assert!(before - windows.len() <= 8, "newcomer {newcomer}: {before} to {}", windows.len());
        before = windows.len() + 1;
    }
    assert_eq!(windows.len(), 4_000);
}

// A clock that stepped far ahead and back again shuts nobody out for longer than a minute.
#[test]
fn a_full_map_believes_no_instant_far_ahead() {
    let mut windows = RateWindows::new(1);
    windows.check(&credential(1), Quota::READS, second(1_000)).unwrap();
    let refused = |windows: &mut RateWindows, now| {
        windows.check(&credential(2), Quota::READS, second(now)).unwrap_err().wait.as_secs()
    };
    assert_eq!(refused(&mut windows, 1_000), 60);
    assert_eq!(refused(&mut windows, 900), 60);
    assert_eq!(refused(&mut windows, 930), 30);
    assert_eq!(windows.check(&credential(2), Quota::READS, second(960)), Ok(()));
}

// A window stamped far ahead by a clock that was wrong is forgotten all the same.
#[test]
fn windows_ahead_of_time_are_forgotten() {
    let mut windows = RateWindows::new(10);
    assert_eq!(windows.check(&credential(1), Quota::READS, second(1_000_000)), Ok(()));
    assert_eq!(windows.check(&credential(2), Quota::READS, second(0)), Ok(()));
    assert_eq!(windows.len(), 2);
    assert_eq!(windows.check(&credential(3), Quota::READS, second(60)), Ok(()));
    assert_eq!(windows.len(), 1);
}

proptest! {
    // Every window of the map as if it were alone, whatever is forgotten around it. With too little room,
    // whoever is admitted would have been admitted alone, and the bound holds.
    #[test]
    fn as_single_windows(
        arrivals in proptest::collection::vec((0..40_u64, 0..2_usize, 0..8 * SECOND), 0..600),
        max in prop_oneof![1..6_usize, Just(1_000)],
    ) {
        let mut windows = RateWindows::new(max);
        let mut alone = BTreeMap::new();
        let mut clock = 0;
        for (number, kind, step) in arrivals {
            clock += step;
            let three = NonZeroU16::new(3).unwrap();
            let quota = [Quota::ACCOUNT, Quota::READS][kind].with_per_minute(three);
            match windows.check(&credential(number), quota, at(clock)) {
                Err(exceeded) if is_for_room(&exceeded) => {
                    prop_assert!(max < 1_000 && exceeded.wait.as_secs() <= 60);
                }
                checked => {
                    let own = alone.entry((number, kind)).or_insert_with(|| RateWindows::new(1));
                    prop_assert_eq!(own.check(&credential(number), quota, at(clock)), checked);
                }
            }
            prop_assert!(windows.len() <= max);
        }
    }
}
