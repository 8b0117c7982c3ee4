//! EVT-8, D-60, D-80: each event processed once, by an inbox in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::receiver::{ActiveClaim, ClaimOutcome, EventKey, Inbox, InboxEntry};

use super::{busy, duplicate, is_busy, is_duplicate, receipt, taken};
use crate::dice::{Dice, HOUR, MINUTE, at};

fn claim(inbox: &mut Inbox, name: &str, now: Timestamp) -> ClaimOutcome {
    inbox.claim(receipt("acct_1", name), ActiveClaim::LEASE, now)
}

#[track_caller]
fn take(inbox: &mut Inbox, name: &str, now: Timestamp) -> ActiveClaim {
    taken(claim(inbox, name, now))
}

#[track_caller]
fn all_busy(inbox: &mut Inbox, names: &[&str], now: Timestamp) {
    for name in names {
        let claim = claim(inbox, name, now);
        assert!(is_busy(&claim), "{name}: {claim:?}");
    }
}

#[track_caller]
fn act_on(inbox: &mut Inbox, name: &str, now: Timestamp) {
    let claimed = take(inbox, name, now);
    assert_eq!(inbox.done(claimed, now).into_status(), 204, "{name}");
}

#[test]
fn the_inbox_in_memory_dedupes_by_account_and_event() {
    let mut inbox = Inbox::new(10);
    let first = take(&mut inbox, "1", at(0));
    // D-60: another account's event of the same id is another event.
    let second = taken(inbox.claim(receipt("acct_2", "1"), ActiveClaim::LEASE, at(0)));
    busy(claim(&mut inbox, "1", at(0)));
    assert_eq!(inbox.done(first, at(0)).into_status(), 204);
    duplicate(claim(&mut inbox, "1", at(0)));
    assert_eq!(inbox.failed(second).into_status(), 503);
    assert_eq!(inbox.len(), 1);
    let _ = taken(inbox.claim(receipt("acct_2", "1"), ActiveClaim::LEASE, at(0)));
}

#[test]
fn the_inbox_in_memory_is_bounded() {
    let mut inbox = Inbox::new(2);
    for name in ["1", "2", "3"] {
        act_on(&mut inbox, name, at(0));
    }
    // The first one that was done is forgotten.
    assert_eq!(inbox.len(), 2);
    duplicate(claim(&mut inbox, "2", at(0)));
    let expires = take(&mut inbox, "1", at(0));
    let _ = take(&mut inbox, "4", at(0));
    // Full of what is being acted on: nothing of that is forgotten before its time has run out.
    all_busy(&mut inbox, &["5", "1"], at(0));
    let fifth = take(&mut inbox, "5", at(60_000));
    let _ = take(&mut inbox, "7", at(60_000));

    // What has lost its place finds no room, and is acknowledged all the same: it was acted on.
    assert_eq!(inbox.done(expires, at(60_000)).into_status(), 204);
    assert_eq!(inbox.len(), 2);
    assert!(!inbox.is_empty());
    all_busy(&mut inbox, &["1", "5", "6", "7"], at(60_000));
    // Where there is room, it is recorded.
    inbox.failed(fifth);
    act_on(&mut inbox, "6", at(60_000));
    duplicate(claim(&mut inbox, "6", at(60_000)));

    let mut none = Inbox::new(0);
    busy(claim(&mut none, "1", at(0)));
    assert!(none.is_empty());
}

/// EVT-8: what has lost its place in a full inbox takes that of an older event.
#[test]
fn the_inbox_in_memory_records_what_is_done_late() {
    let mut inbox = Inbox::new(1);
    let late = take(&mut inbox, "late", at(0));
    act_on(&mut inbox, "other", at(MINUTE));
    assert_eq!(inbox.done(late, at(MINUTE)).into_status(), 204);
    assert_eq!(inbox.len(), 1);
    duplicate(claim(&mut inbox, "late", at(MINUTE)));
}

/// EVT-8: what handlers have taken and dropped does not take the room of what is known as done.
#[test]
fn the_inbox_in_memory_forgets_expired_claims_first() {
    let mut inbox = Inbox::new(100);
    act_on(&mut inbox, "1", at(0));
    for number in 0..98 {
        let _ = take(&mut inbox, &format!("dropped_{number}"), at(0));
    }
    act_on(&mut inbox, "2", at(0));
    // Full, and each of the claims is held: what was done first makes room.
    act_on(&mut inbox, "3", at(MINUTE - 1));
    assert_eq!(inbox.len(), 100);
    let _ = take(&mut inbox, "1", at(MINUTE - 1));
    // They have expired: each of them makes room for one.
    for number in 4..=100 {
        act_on(&mut inbox, &number.to_string(), at(MINUTE));
        assert_eq!(inbox.len(), 100, "{number}");
    }
    for number in 3..=100 {
        let claim = claim(&mut inbox, &number.to_string(), at(MINUTE));
        assert!(is_duplicate(&claim), "{number}: {claim:?}");
    }
}

/// D-80: claims of a clock that was ahead do not fill an inbox for longer than their length.
#[test]
fn the_inbox_in_memory_forgets_claims_of_a_wrong_clock() {
    const YEAR: i64 = 365 * 24 * HOUR;
    let mut inbox = Inbox::new(3);
    let _ = take(&mut inbox, "held", at(0));
    for name in ["ahead_1", "ahead_2"] {
        let _ = take(&mut inbox, name, at(YEAR));
    }
    let _ = take(&mut inbox, "ahead_1", at(0));
    let _ = take(&mut inbox, "next", at(0));
    all_busy(&mut inbox, &["held", "ahead_1", "next", "ahead_2"], at(0));
    assert_eq!(inbox.len(), 3);
}

/// A claim that is made again at the very instant at which it ends is one claim.
#[test]
fn the_inbox_in_memory_lists_each_claim_once() {
    let mut inbox = Inbox::new(1);
    for _ in 0..2 {
        let _ = taken(inbox.claim(receipt("acct_1", "1"), Duration::ZERO, at(0)));
    }
    let _ = take(&mut inbox, "2", at(0));
    assert_eq!(inbox.len(), 1);
    busy(claim(&mut inbox, "3", at(0)));
    let _ = take(&mut inbox, "3", at(MINUTE));
    assert_eq!(inbox.len(), 1);
}

/// An inbox that is full of held claims is not gone through for room. If it were, this would take
/// minutes instead of seconds.
#[test]
fn the_inbox_in_memory_is_not_gone_through_for_room() {
    const SIZE: usize = 20_000;
    let mut inbox = Inbox::new(SIZE);
    for number in 0..SIZE {
        let _ = take(&mut inbox, &number.to_string(), at(0));
    }
    for number in SIZE..2 * SIZE {
        all_busy(&mut inbox, &[&number.to_string()], at(1));
    }
}

/// Done twice is done once: it is forgotten in its turn, and makes room for one.
#[test]
fn the_inbox_in_memory_forgets_each_event_once() {
    let mut inbox = Inbox::new(2);
    let [slow, quick] = [0, MINUTE].map(|now| take(&mut inbox, "1", at(now)));
    for claimed in [quick, slow] {
        inbox.done(claimed, at(MINUTE));
    }
    act_on(&mut inbox, "2", at(MINUTE));
    let _ = take(&mut inbox, "3", at(MINUTE));
    duplicate(claim(&mut inbox, "2", at(MINUTE)));
    let _ = take(&mut inbox, "4", at(MINUTE));
    assert_eq!(inbox.len(), 2);
}

/// The same dice to the inbox in memory and to a map of entries: the same answers.
#[test]
fn the_inbox_in_memory_does_as_a_store() {
    for seed in 0..500 {
        let mut dice = Dice::new(seed);
        let mut inbox = Inbox::new(100);
        let mut rows: BTreeMap<EventKey, InboxEntry> = BTreeMap::new();
        let mut held: Vec<[ActiveClaim; 2]> = Vec::new();
        let mut now = 0;
        for _ in 0..100 {
            now += dice.span(5 * MINUTE);
            let (account, name) = (format!("acct_{}", dice.up_to(1)), dice.up_to(4).to_string());
            let which = usize::try_from(dice.up_to(9)).unwrap();
            match dice.up_to(3) {
                0 | 1 if which < held.len() => {
                    let [in_memory, stored] = held.swap_remove(which);
                    let key = stored.receipt().key().clone();
                    if dice.chance(50) {
                        let (entry, response) = stored.done(at(now));
                        assert_eq!(inbox.done(in_memory, at(now)), response, "seed {seed}");
                        rows.insert(key, entry);
                    } else {
                        let claim = stored.entry();
                        let (entry, response) = stored.failed();
                        assert_eq!(inbox.failed(in_memory), response, "seed {seed}");
                        if rows.get(&key) == Some(&claim) {
                            rows.insert(key, entry);
                        }
                    }
                }
                _ => {
                    let copy = receipt(&account, &name);
                    let key = copy.key().clone();
                    let expected = copy.claim(rows.get(&key), ActiveClaim::LEASE, at(now));
                    let claim = inbox.claim(receipt(&account, &name), ActiveClaim::LEASE, at(now));
                    match (claim, expected) {
                        (ClaimOutcome::Process(claimed), ClaimOutcome::Process(expected)) => {
                            assert_eq!(claimed.entry(), expected.entry(), "seed {seed}");
                            rows.insert(key, expected.entry());
                            held.push([claimed, expected]);
                        }
                        (ClaimOutcome::Answer(answer), ClaimOutcome::Answer(expected)) => {
                            assert_eq!(answer, expected, "seed {seed}");
                        }
                        other => panic!("seed {seed}: {other:?}"),
                    }
                }
            }
        }
    }
}
