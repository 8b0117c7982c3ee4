//! The leases' table of events and commands: what happens goes in, what to do comes out.
#![allow(clippy::arithmetic_side_effects, clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::time::Duration;

use call_assistant::Timestamp;
use host::rows::Shards;
use host::sender::Owned;
use host::sender::leases::{Claim, Command, Event, Leases, Renewal};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The leases of a sender of 64 shards, and what they have asked for last.
struct World {
    leases: Leases,
    at: Duration,
    /// Shards of which something is in hand.
    in_hand: BTreeSet<u16>,
    renewals: i64,
    others: Vec<String>,
    asked: Vec<Command>,
    owned: Owned,
}

impl World {
    fn new() -> Self {
        Self {
            leases: Leases::new("me".to_owned(), NonZeroU16::new(64).unwrap()),
            at: 100 * SECOND,
            in_hand: BTreeSet::new(),
            renewals: 0,
            others: Vec::new(),
            asked: Vec::new(),
            owned: Owned::default(),
        }
    }

    fn hears(&mut self, event: Event) -> &[Command] {
        self.asked = self.leases.hear(event, self.at, |shard| !self.in_hand.contains(&shard));
        for command in &self.asked {
            if let Command::Own(owned) = command {
                self.owned = owned.clone();
            }
        }
        &self.asked
    }

    /// Begins a round, up to the renewal that is asked for.
    #[track_caller]
    fn begins(&mut self) -> Shards {
        assert!(matches!(self.hears(Event::Woken), [Command::Compare]), "{:?}", self.asked);
        match self.hears(Event::Compared(true)) {
            [Command::Renew(held)] => held.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the next renewal, which keeps these.
    fn renewal(&mut self, kept: impl IntoIterator<Item = u16>) -> Renewal {
        self.renewals += 1;
        let at = Timestamp::from_unix(1_770_000_000).unwrap().saturating_add(self.at);
        Renewal {
            kept: kept.into_iter().collect(),
            live: self.others.len() + 1,
            count: self.renewals,
            timeline: "1".to_owned(),
            at,
            others: self.others.clone(),
        }
    }

    /// Hears that it has renewed these.
    fn renewed(&mut self, kept: impl IntoIterator<Item = u16>) -> &[Command] {
        let renewal = self.renewal(kept);
        self.hears(Event::Renewed(renewal))
    }

    /// Renews all that is held, and returns what is asked for then.
    #[track_caller]
    fn renews(&mut self) -> &[Command] {
        let held = self.begins();
        self.renewed(held.into_keys())
    }

    /// Takes these shards from somebody.
    fn claims(&mut self, shards: impl IntoIterator<Item = u16>, before: Option<&str>) {
        let claim = |shard| Claim { shard, epoch: 7, before: before.map(str::to_owned) };
        self.hears(Event::Claimed(shards.into_iter().map(claim).collect()));
    }

    /// Returns a world whose sender has owned all shards for a second.
    fn with_all() -> Self {
        let mut world = Self::new();
        assert!(matches!(world.renews(), [Command::Own(_), Command::Claim(64)]));
        world.claims(0..64, None);
        world.waits(SECOND);
        world
    }

    /// Gives back what is asked for, and returns which shards, and whether the sender leaves.
    #[track_caller]
    fn gives_back(&mut self) -> (usize, bool) {
        let Some(Command::Release(shards, leaves)) = self.asked.pop() else {
            panic!("{:?}", self.asked)
        };
        assert_eq!(shards.values().copied().max().unwrap_or(7), 7, "by their epochs");
        let count = shards.len();
        self.hears(Event::Released(shards, leaves));
        (count, leaves)
    }

    /// Waits for what is asked for, which is so long.
    #[track_caller]
    fn waits(&mut self, wait: Duration) {
        let Some(Command::Wait(until)) = self.asked.last() else { panic!("{:?}", self.asked) };
        assert_eq!(until.saturating_sub(self.at), wait);
        self.at = *until;
    }

    /// What is owned, and for how long from now on.
    fn owns(&self) -> (usize, Duration) {
        let Owned { shards, until } = &self.owned;
        (shards.len(), until.saturating_sub(self.at))
    }
}

#[test]
fn a_sender_alone_owns_all_and_trusts_its_leases_for_three_seconds_from_before_they_were_renewed() {
    let mut world = World::new();
    assert_eq!(world.begins(), Shards::new());
    world.at += 20 * MS;
    let commands = world.renewed([]);
    assert!(matches!(commands, [Command::Own(_), Command::Claim(64)]), "{commands:?}");
    world.claims(0..64, None);
    assert!(matches!(&world.asked[..], [Command::Own(owned), _] if owned.shards.len() == 64));
    assert_eq!(world.owns(), (64, 2980 * MS));
    // A second after the round began, not after it ended.
    world.waits(980 * MS);
    assert_eq!(world.begins().len(), 64);
    world.at += 1500 * MS;
    world.renewed(0..64);
    assert_eq!(world.owns(), (64, 1500 * MS));
    world.waits(Duration::ZERO);
}

#[test]
fn a_shard_that_another_has_taken_is_not_owned_from_then_on() {
    let mut world = World::with_all();
    world.begins();
    let commands = world.renewed(0..60);
    let [Command::Own(owned), Command::Claim(4)] = commands else { panic!("{commands:?}") };
    assert_eq!(owned.shards.len(), 60);
}

#[test]
fn senders_share_the_shards_and_what_is_in_flight_of_one_that_goes_has_a_second() {
    let mut world = World::with_all();
    world.others = vec!["other".to_owned()];
    world.in_hand = [40, 63].into();
    // Nothing of them begins before they are given back.
    let commands = world.renews();
    let [Command::Own(owned), Command::Release(free, false)] = commands else {
        panic!("{commands:?}")
    };
    assert!(owned.shards.keys().copied().eq(0..32), "{owned:?}");
    assert!(free.keys().copied().eq((32..64).filter(|it| ![40, 63].contains(it))), "{free:?}");
    assert_eq!(world.gives_back(), (30, false));
    world.waits(SECOND);
    world.in_hand.remove(&40);
    // Its leases are renewed until then.
    assert_eq!(world.begins().len(), 34);
    world.renewed((0..32).chain([40, 63]));
    assert_eq!(world.gives_back(), (1, false));
    world.waits(SECOND);
    world.renews();
    assert_eq!(world.gives_back(), (1, false), "the silent one holds up nobody for longer");
    world.waits(SECOND);
    assert_eq!(world.begins().len(), 32);
}

// D-84: a store that does not answer costs what its leases last, and nothing for good.
#[test]
fn whatever_is_refused_is_asked_for_again_a_second_later() {
    for step in ["compare", "renew", "claim", "release"] {
        let mut world = World::with_all();
        world.at += 100 * MS;
        let trusted = match step {
            "compare" => {
                world.hears(Event::Woken);
                1900
            }
            "renew" => {
                world.begins();
                1900
            }
            "claim" => {
                world.begins();
                assert!(matches!(world.renewed(0..60), [_, Command::Claim(4)]));
                3000
            }
            _ => {
                world.others = vec!["other".to_owned()];
                assert!(matches!(world.renews(), [_, Command::Release(..)]));
                3000
            }
        };
        world.hears(Event::Refused);
        assert_eq!(world.owns().1, trusted * MS, "{step}");
        world.waits(SECOND);
        let held = world.begins().len();
        assert_eq!(held, if step == "claim" { 60 } else { 64 }, "{step}");
        world.renewed(0..64);
        match step {
            "claim" => assert!(matches!(world.asked[..], [_, Command::Claim(4)])),
            "release" => assert_eq!(world.gives_back(), (32, false)),
            _ => world.waits(SECOND),
        }
    }
}

// D-103
#[test]
fn a_sender_whose_clock_is_wrong_gives_all_back_and_comes_again_by_itself() {
    let mut world = World::with_all();
    world.in_hand = [5].into();
    world.hears(Event::Woken);
    let commands = world.hears(Event::Compared(false));
    let [Command::Own(owned), Command::Release(..)] = commands else { panic!("{commands:?}") };
    assert_eq!(*owned, Owned::default());
    assert_eq!(world.gives_back(), (63, true));
    world.waits(SECOND);
    world.at += MS;
    world.hears(Event::Woken);
    world.hears(Event::Compared(false));
    assert_eq!(world.gives_back(), (1, false), "it has left");
    world.waits(SECOND);
    world.hears(Event::Woken);
    world.hears(Event::Compared(false));
    world.waits(SECOND);
    // Its row may be gone by now, which says nothing of the store.
    world.renewals = 0;
    let commands = world.renews();
    assert!(matches!(commands, [Command::Own(_), Command::Claim(64)]), "{commands:?}");
}

// D-84: a sender that ends gives its shards back at once, but for those of what is in flight.
#[test]
fn a_sender_that_stops_gives_back_what_is_free_and_the_rest_when_its_leases_end() {
    let mut world = World::with_all();
    world.in_hand = [5, 6, 7].into();
    world.hears(Event::Stopped);
    assert_eq!(world.owned, Owned::default());
    // The store does not answer at first.
    world.hears(Event::Refused);
    world.waits(SECOND);
    world.hears(Event::Woken);
    assert_eq!(world.gives_back(), (61, true));
    world.waits(50 * MS);
    world.hears(Event::Woken);
    world.waits(50 * MS);
    world.in_hand.remove(&6);
    world.hears(Event::Woken);
    assert_eq!(world.gives_back(), (1, false));
    world.at += 3 * SECOND;
    world.hears(Event::Woken);
    assert_eq!(world.gives_back(), (2, false), "four seconds after the signal");
    world.waits(50 * MS);
    // What it holds by now is gone, and it leaves again: `erase` waits for what was in flight.
    world.hears(Event::Ended);
    assert!(matches!(&world.asked[..], [_, Command::Release(none, true)] if none.is_empty()));
    assert_eq!(world.gives_back(), (0, true));
    assert!(matches!(world.asked[..], [Command::End]));
}

#[test]
fn a_sender_that_has_ended_gives_all_back_and_asks_once() {
    for event in [Event::Released(Shards::new(), true), Event::Refused] {
        let mut world = World::with_all();
        world.in_hand = [5].into();
        world.hears(Event::Stopped);
        assert_eq!(world.gives_back(), (63, true));
        let commands = world.hears(Event::Ended);
        let [_, Command::Release(rest, true)] = commands else { panic!("{commands:?}") };
        assert_eq!(rest.len(), 1);
        assert!(matches!(world.hears(event), [Command::End]));
    }
}

// D-97
#[test]
fn who_was_away_for_long_reports_nothing() {
    let (well, again, went_back) = (None, Some(false), Some(true));
    for (last, now, expected) in [
        ((1, 0, "1"), (2, 1, "1"), well),
        ((7, 0, "1"), (8, 9_999, "1"), well),
        // Another server leads.
        ((7, 0, "1"), (8, 1, "2"), again),
        ((7, 0, "1"), (7, 1, "2"), went_back),
        ((7, 0, "1"), (1, 3_599, "1"), went_back),
        ((1, 0, "1"), (1, 1, "1"), went_back),
        // It was away for so long that its row was removed.
        ((7, 0, "1"), (1, 3_600, "1"), again),
        ((7, 0, "1"), (2, 9_999, "1"), went_back),
    ] {
        let mut world = World::new();
        let new = world.renewal([]);
        let renewal = |(count, seconds, timeline): (i64, u32, &str)| {
            let at = new.at.saturating_add(seconds * SECOND);
            Renewal { count, at, timeline: timeline.to_owned(), ..new.clone() }
        };
        world.begins();
        world.hears(Event::Renewed(renewal(last)));
        world.claims([], None);
        world.begins();
        let said = match world.hears(Event::Renewed(renewal(now))) {
            [Command::LookAgain(why), ..] => Some(why.is_some()),
            _ => None,
        };
        assert_eq!(said, expected, "{now:?} after {last:?}");
    }
}

// After an outage the first sender that is back takes the shards of those that come back a moment later.
#[test]
fn a_sender_has_vanished_that_is_not_back_ten_renewals_after_it_lost_shards() {
    let mut world = World::new();
    world.renews();
    world.claims(0..3, Some("dead"));
    world.claims([3], Some("late"));
    world.claims(4..10, Some("me"));
    world.claims(10..64, None);
    // The lease that it had before may still last.
    world.others = vec!["dead".to_owned()];
    for renewal in 1..10 {
        world.renews();
        assert_eq!(world.leases.taken(), 0, "{renewal}");
        // Renewals that fail do not count: then nobody renews.
        world.begins();
        world.hears(Event::Refused);
    }
    world.others = vec!["late".to_owned()];
    world.renews();
    assert_eq!(world.leases.taken(), 3);
    world.others.clear();
    world.renews();
    assert_eq!(world.leases.taken(), 3, "each is judged once");
    // It may lose shards again, and is judged again.
    world.claims([63], Some("late"));
    for _ in 0..10 {
        world.renews();
    }
    assert_eq!(world.leases.taken(), 4);
}
