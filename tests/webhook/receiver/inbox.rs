//! EVT-8, D-60, D-80: each event processed once, by an inbox in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::receiver::{CLAIM_LEASE, Claim, Inbox, InboxEntry};

use super::{account, event, taken};
use crate::dice::{Dice, HOUR, MINUTE, at};

#[test]
fn the_inbox_in_memory_dedupes_by_account_and_event() {
    let mut inbox = Inbox::new(10);
    let (one, two) = (account("acct_1"), account("acct_2"));
    let first = taken(inbox.claim(&one, &event("1"), CLAIM_LEASE, at(0)));
    // D-60: another account's event of the same id is another event.
    let second = taken(inbox.claim(&two, &event("1"), CLAIM_LEASE, at(0)));
    assert_eq!(inbox.claim(&one, &event("1"), CLAIM_LEASE, at(0)), Claim::Busy);
    inbox.done(&one, &event("1"), at(0));
    inbox.done(&one, &event("1"), at(1));
    inbox.failed(&one, &event("1"), first);
    inbox.failed(&one, &event("1"), first.done(at(0)));
    assert_eq!(inbox.claim(&one, &event("1"), CLAIM_LEASE, at(0)), Claim::Duplicate);
    inbox.failed(&two, &event("1"), second);
    assert_eq!(inbox.len(), 1);
    taken(inbox.claim(&two, &event("1"), CLAIM_LEASE, at(0)));
}

/// EVT-8: whoever was too slow and fails does not give away what another has taken since.
#[test]
fn a_claim_that_ran_out_is_no_longer_given_back() {
    let mut inbox = Inbox::new(10);
    let one = account("acct_1");
    let slow = taken(inbox.claim(&one, &event("1"), CLAIM_LEASE, at(0)));
    let other = taken(inbox.claim(&one, &event("1"), CLAIM_LEASE, at(60_000)));
    inbox.failed(&one, &event("1"), slow);
    assert_eq!(inbox.claim(&one, &event("1"), CLAIM_LEASE, at(60_000)), Claim::Busy);
    inbox.failed(&one, &event("1"), other);
    taken(inbox.claim(&one, &event("1"), CLAIM_LEASE, at(60_000)));
    // Done is done, whoever did it.
    inbox.done(&one, &event("1"), at(60_000));
    assert_eq!(inbox.claim(&one, &event("1"), CLAIM_LEASE, at(60_000)), Claim::Duplicate);
}

#[test]
fn the_inbox_in_memory_is_bounded() {
    let mut inbox = Inbox::new(2);
    let one = account("acct_1");
    for name in ["1", "2", "3"] {
        taken(inbox.claim(&one, &event(name), CLAIM_LEASE, at(0)));
        inbox.done(&one, &event(name), at(0));
    }
    // The first one that was done is forgotten.
    assert_eq!(inbox.len(), 2);
    assert_eq!(inbox.claim(&one, &event("2"), CLAIM_LEASE, at(0)), Claim::Duplicate);
    taken(inbox.claim(&one, &event("1"), CLAIM_LEASE, at(0)));
    taken(inbox.claim(&one, &event("4"), CLAIM_LEASE, at(0)));
    // Full of what is being acted on: nothing of that is forgotten before its time has run out.
    assert_eq!(inbox.claim(&one, &event("5"), CLAIM_LEASE, at(0)), Claim::Busy);
    assert_eq!(inbox.claim(&one, &event("1"), CLAIM_LEASE, at(0)), Claim::Busy);
    let fifth = taken(inbox.claim(&one, &event("5"), CLAIM_LEASE, at(60_000)));
    taken(inbox.claim(&one, &event("7"), CLAIM_LEASE, at(60_000)));

    // Word of an event that was never taken here finds no room, and is not kept either.
    inbox.done(&one, &event("6"), at(60_000));
    assert_eq!(inbox.len(), 2);
    assert!(!inbox.is_empty());
    for name in ["5", "6", "7"] {
        let claim = inbox.claim(&one, &event(name), CLAIM_LEASE, at(60_000));
        assert_eq!(claim, Claim::Busy, "{name}");
    }
    // Where there is room, it is.
    inbox.failed(&one, &event("5"), fifth);
    inbox.done(&one, &event("6"), at(60_000));
    assert_eq!(inbox.claim(&one, &event("6"), CLAIM_LEASE, at(60_000)), Claim::Duplicate);

    let mut none = Inbox::new(0);
    assert_eq!(none.claim(&one, &event("1"), CLAIM_LEASE, at(0)), Claim::Busy);
    assert!(none.is_empty());
}

/// EVT-8: what handlers have taken and dropped does not take the room of what is known as done.
#[test]
fn the_inbox_in_memory_forgets_expired_claims_first() {
    let mut inbox = Inbox::new(100);
    let one = account("acct_1");
    let acted_on = |inbox: &mut Inbox, name: &str, now| {
        taken(inbox.claim(&one, &event(name), CLAIM_LEASE, now));
        inbox.done(&one, &event(name), now);
    };
    acted_on(&mut inbox, "1", at(0));
    for number in 0..98 {
        taken(inbox.claim(&one, &event(&format!("dropped_{number}")), CLAIM_LEASE, at(0)));
    }
    acted_on(&mut inbox, "2", at(0));
    // Full, and each of the claims is held: what was done first makes room.
    acted_on(&mut inbox, "3", at(MINUTE - 1));
    assert_eq!(inbox.len(), 100);
    taken(inbox.claim(&one, &event("1"), CLAIM_LEASE, at(MINUTE - 1)));
    // They have expired: each of them makes room for one.
    for number in 4..=100 {
        acted_on(&mut inbox, &number.to_string(), at(MINUTE));
        assert_eq!(inbox.len(), 100, "{number}");
    }
    for number in 3..=100 {
        let claim = inbox.claim(&one, &event(&number.to_string()), CLAIM_LEASE, at(MINUTE));
        assert_eq!(claim, Claim::Duplicate, "{number}");
    }
}

/// D-80: claims of a clock that was ahead do not fill an inbox for longer than their length.
#[test]
fn the_inbox_in_memory_forgets_claims_of_a_wrong_clock() {
    const YEAR: i64 = 365 * 24 * HOUR;
    let mut inbox = Inbox::new(3);
    let one = account("acct_1");
    taken(inbox.claim(&one, &event("held"), CLAIM_LEASE, at(0)));
    for name in ["ahead_1", "ahead_2"] {
        taken(inbox.claim(&one, &event(name), CLAIM_LEASE, at(YEAR)));
    }
    taken(inbox.claim(&one, &event("ahead_1"), CLAIM_LEASE, at(0)));
    taken(inbox.claim(&one, &event("next"), CLAIM_LEASE, at(0)));
    for name in ["held", "ahead_1", "next"] {
        assert_eq!(inbox.claim(&one, &event(name), CLAIM_LEASE, at(0)), Claim::Busy, "{name}");
    }
    assert_eq!(inbox.claim(&one, &event("ahead_2"), CLAIM_LEASE, at(0)), Claim::Busy);
    assert_eq!(inbox.len(), 3);
}

/// A claim that is made again at the very instant at which it ends is one claim.
#[test]
fn the_inbox_in_memory_lists_each_claim_once() {
    let mut inbox = Inbox::new(1);
    let one = account("acct_1");
    for _ in 0..2 {
        taken(inbox.claim(&one, &event("1"), Duration::ZERO, at(0)));
    }
    taken(inbox.claim(&one, &event("2"), CLAIM_LEASE, at(0)));
    assert_eq!(inbox.len(), 1);
    assert_eq!(inbox.claim(&one, &event("3"), CLAIM_LEASE, at(0)), Claim::Busy);
    taken(inbox.claim(&one, &event("3"), CLAIM_LEASE, at(MINUTE)));
    assert_eq!(inbox.len(), 1);
}

/// An inbox that is full of held claims is not gone through for room. If it were, this would take
/// minutes instead of a fraction of a second.
#[test]
fn the_inbox_in_memory_is_not_gone_through_for_room() {
    const SIZE: usize = 50_000;
    let mut inbox = Inbox::new(SIZE);
    let one = account("acct_1");
    for number in 0..SIZE {
        taken(inbox.claim(&one, &event(&number.to_string()), CLAIM_LEASE, at(0)));
    }
    for number in SIZE..2 * SIZE {
        let claim = inbox.claim(&one, &event(&number.to_string()), CLAIM_LEASE, at(1));
        assert_eq!(claim, Claim::Busy, "{number}");
    }
}

/// Done twice is done once: it is forgotten in its turn, and makes room for one.
#[test]
fn the_inbox_in_memory_forgets_each_event_once() {
    let mut inbox = Inbox::new(2);
    let one = account("acct_1");
    for (name, times) in [("1", 2), ("2", 1)] {
        taken(inbox.claim(&one, &event(name), CLAIM_LEASE, at(0)));
        for _ in 0..times {
            inbox.done(&one, &event(name), at(0));
        }
    }
    taken(inbox.claim(&one, &event("3"), CLAIM_LEASE, at(0)));
    assert_eq!(inbox.claim(&one, &event("2"), CLAIM_LEASE, at(0)), Claim::Duplicate);
    taken(inbox.claim(&one, &event("4"), CLAIM_LEASE, at(0)));
    assert_eq!(inbox.len(), 2);
}

/// The same dice to the inbox in memory and to a map of entries: the same answers.
#[test]
fn the_inbox_in_memory_does_as_a_store() {
    for seed in 0..500 {
        let mut dice = Dice::new(seed);
        let mut inbox = Inbox::new(100);
        let mut rows: BTreeMap<(AccountId, EventId), InboxEntry> = BTreeMap::new();
        let mut now = 0;
        for _ in 0..100 {
            now += dice.span(5 * MINUTE);
            let key =
                (account(&format!("acct_{}", dice.up_to(1))), event(&dice.up_to(4).to_string()));
            match dice.up_to(3) {
                0 => {
                    inbox.done(&key.0, &key.1, at(now));
                    let row = rows.get(&key).copied();
                    let row =
                        row.unwrap_or_else(|| taken(InboxEntry::claim(None, CLAIM_LEASE, at(0))));
                    rows.insert(key, row.done(at(now)));
                }
                1 => {
                    if let Some(row) = rows.get_mut(&key) {
                        inbox.failed(&key.0, &key.1, *row);
                        *row = row.failed();
                    }
                }
                _ => {
                    let expected = InboxEntry::claim(rows.get(&key), CLAIM_LEASE, at(now));
                    assert_eq!(
                        inbox.claim(&key.0, &key.1, CLAIM_LEASE, at(now)),
                        expected,
                        "seed {seed}"
                    );
                    if let Claim::Process(entry) = expected {
                        rows.insert(key, entry);
                    }
                }
            }
        }
    }
}
