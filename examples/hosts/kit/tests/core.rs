//! The sender's core: what happened goes in, what to do comes out. No clock runs, and nothing waits.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs
)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    Delivery, DeliveryStatus, EndedAttempt, EndpointHealth, EndpointUrl, Outcome, RetrySchedule,
    SignedDestination,
};
use call_assistant::webhook::{Signer, SigningSecret};
use host::post::Sent;
use host::rows::{Failure, Names, News, Opened, PendingRow, ToBegin};
use host::sender::{Begun, Command, Core, Ended, Event, How, Moment, Owned, postpone};
use http::StatusCode;
use testing::event::ping;

const MS: Duration = Duration::from_millis(1);

/// A sender of one shard, its clock, and what it has done.
struct World {
    core: Core,
    at: Moment,
    endpoint: EndpointHealth,
    /// The endpoint when its deliveries were accepted.
    accepted_by: EndpointHealth,
    /// The stored rows that somebody else has changed.
    changed: BTreeMap<u64, Delivery>,
}

fn event(now: Timestamp) -> EventBody {
    ping("evt_1", "acct_1", now)
}

impl World {
    fn new() -> Self {
        let now = Timestamp::from_unix(1_770_000_000).unwrap();
        let at = Moment { now, steady: Duration::from_secs(100), is_true: true };
        let (core, endpoint) = (Core::new(0), EndpointHealth::new(7, now));
        let mut world =
            Self { core, at, endpoint, accepted_by: endpoint, changed: BTreeMap::new() };
        let owned = Owned { shards: [(3, 1)].into(), until: Duration::MAX };
        assert!(world.hears(Event::Owned(owned)).is_empty());
        world
    }

    fn passes(&mut self, time: Duration) {
        self.at.now = self.at.now.saturating_add(time);
        self.at.steady += time;
    }

    /// Returns all that is to be done after an event.
    fn hears(&mut self, event: Event) -> Vec<Command> {
        let mut commands = VecDeque::new();
        self.core.hear(event, self.at, &mut commands);
        while let Some(command) = self.core.next(self.at) {
            commands.push_back(command);
        }
        commands.into()
    }

    fn turns(&mut self) -> Vec<Command> {
        std::iter::from_fn(|| self.core.next(self.at)).collect()
    }

    fn delivery(&self, number: u64) -> Delivery {
        let new = || Delivery::accept(&event(self.at.now), &self.accepted_by, self.at.now);
        self.changed.get(&number).copied().unwrap_or_else(|| new().with_id(number))
    }

    /// Has the endpoint paused and enabled, and deliveries redelivered that were parked meanwhile.
    fn redelivered(&mut self, numbers: impl IntoIterator<Item = u64>) {
        let now = self.at.now;
        let mut rows: Vec<_> = numbers.into_iter().map(|number| self.delivery(number)).collect();
        let _ = self.endpoint.pause(now);
        rows.iter_mut().for_each(|row| _ = row.park(&self.endpoint, now));
        let _ = self.endpoint.enable(now).unwrap();
        for mut row in rows {
            row.redeliver(&self.endpoint, now).unwrap();
            self.changed.insert(row.id(), row.into_stored());
        }
        self.accepted_by = self.endpoint;
    }

    /// Tells of deliveries that became pending.
    fn finds(&mut self, numbers: impl IntoIterator<Item = u64>) -> Vec<Command> {
        let row = |number| PendingRow { shard: 3, account: 1, delivery: self.delivery(number) };
        let rows = numbers.into_iter().map(row).collect();
        self.hears(Event::News(News { rows, ..News::default() }))
    }

    /// Reads what a command says.
    fn reads(&mut self, command: Command) -> Vec<Command> {
        let Command::Read(planned) = command else { panic!("{command:?}") };
        let opened = Arc::new(Opened {
            names: Names { account: "acct_1".into(), endpoint: "we_1".into(), shard: 3 },
            destination: Some(SignedDestination::new(
                &self.endpoint,
                EndpointUrl::parse("https://example.com/hook").unwrap(),
                Signer::new(SigningSecret::from_random([1; 32])),
            )),
            signer: Signer::new(SigningSecret::from_random([1; 32])),
        });
        let read = planned.iter().map(|planned| {
            Some(ToBegin {
                delivery: self.delivery(planned.delivery),
                name: format!("dlv_{}", planned.delivery),
                health: self.endpoint,
                opened: Arc::clone(&opened),
                body: event(self.at.now),
                traceparent: None,
            })
        });
        let read = read.collect();
        self.hears(Event::Read(planned, Ok(read)))
    }

    /// Returns attempts in flight of these deliveries.
    fn begins(&mut self, numbers: impl IntoIterator<Item = u64>) -> Vec<Begun> {
        let commands = self.finds(numbers);
        self.posts(commands)
    }

    /// Returns the attempts in flight after commands that read.
    fn posts(&mut self, commands: Vec<Command>) -> Vec<Begun> {
        let (mut commands, mut begun) = (VecDeque::from(commands), Vec::new());
        while let Some(command) = commands.pop_front() {
            match command {
                Command::Post(each) => begun.push(*each),
                read @ Command::Read(_) => commands.extend(self.reads(read)),
                other => panic!("{other:?}"),
            }
        }
        begun
    }

    /// Ends an attempt.
    fn ends(&mut self, begun: Begun, outcome: Outcome) -> Vec<Command> {
        let Begun { key, row, attempt, opened, .. } = begun;
        let (at, endpoint) = (self.at.now, key.endpoint);
        let sent = Sent::without_answer(outcome, at);
        let ended = Ended { key, row, attempt, opened, at, sent };
        let mut commands = self.hears(Event::Ended(Box::new(ended)));
        commands.extend(self.hears(Event::Freed { endpoint, outcome, took: MS }));
        commands
    }

    /// Ends an attempt, and stores its result. Returns what is to be done then.
    #[track_caller]
    fn settles(&mut self, begun: Begun, outcome: Outcome) -> Vec<Command> {
        assert!(self.ends(begun, outcome).is_empty(), "others may end");
        let (stored, how) = self.collected();
        self.stored(stored, how)
    }

    /// Returns what is to be stored of what has ended just now.
    #[track_caller]
    fn collected(&mut self) -> (Vec<Ended>, How) {
        self.passes(5 * MS);
        batch(self.turns())
    }

    /// Has one delivery found, and begins its attempt.
    #[track_caller]
    fn begins_one(&mut self) -> Begun {
        let [begun] = <[Begun; 1]>::try_from(self.begins([1])).unwrap();
        begun
    }

    /// Stores a batch: the rows are as they were begun, unless somebody else has changed them.
    fn stored(&mut self, batch: Vec<Ended>, how: How) -> Vec<Command> {
        let ended: Vec<_> = batch
            .iter()
            .map(|ended| EndedAttempt {
                delivery: ended.key.delivery,
                endpoint: ended.key.endpoint,
                attempt: ended.attempt,
                outcome: ended.sent.outcome,
                at: ended.at,
                response: None,
            })
            .collect();
        let stored = |id, row| self.changed.get(&id).copied().unwrap_or(row);
        let rows = batch.iter().map(|ended| (ended.key.delivery, ended.row));
        let rows = rows.map(|(id, row)| (id, stored(id, row))).collect();
        let endpoints = [(7, self.endpoint)].into();
        let settled = RetrySchedule::default().settle(&ended, &rows, &endpoints);
        self.hears(Event::Stored(batch, how, Box::new(Ok(settled))))
    }

    fn not_stored(&mut self, batch: Vec<Ended>, how: How, failure: Failure) -> Vec<Command> {
        self.hears(Event::Stored(batch, how, Box::new(Err(failure))))
    }
}

fn batch(commands: Vec<Command>) -> (Vec<Ended>, How) {
    let mut commands = commands.into_iter();
    match (commands.next(), commands.next()) {
        (Some(Command::Store(batch, how)), None) => (batch, how),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_delivery_is_read_posted_and_stored_and_its_two_ends_are_heard() {
    let mut world = World::new();
    let begun = world.begins_one();
    assert_eq!((begun.key.delivery, begun.attempt.number()), (1, 1));
    // However often it is found, it is in hand once.
    assert!(world.finds([1, 1]).is_empty());
    assert!(world.ends(begun, Outcome::Reset).is_empty(), "others may end");
    assert_eq!(world.core.wait(world.at), Some(5 * MS));
    world.passes(5 * MS);
    let (stored, how) = batch(world.turns());
    assert_eq!((stored.len(), how, world.core.is_idle()), (1, How::Quick, false));

    assert!(world.stored(stored, how).is_empty());
    assert!(world.core.is_idle());
    // Ten seconds after it ended.
    assert_eq!(world.core.wait(world.at), Some(9_995 * MS));
    world.passes(9_995 * MS);
    assert!(matches!(world.turns().as_slice(), [Command::Read(read)] if read[0].delivery == 1));
}

#[test]
fn four_batches_are_read_at_a_time_and_none_for_a_while_after_one_that_was_not() {
    let mut world = World::new();
    // One endpoint has room for eight: so each is of its own.
    let rows = (1..=600).map(|number| {
        let endpoint = EndpointHealth::new(number, world.at.now);
        let delivery = Delivery::accept(&event(world.at.now), &endpoint, world.at.now);
        let account = u32::try_from(number % 100).unwrap();
        PendingRow { shard: 3, account, delivery: delivery.with_id(number) }
    });
    let news = News { rows: rows.collect(), ..News::default() };
    let mut reads: VecDeque<Command> = world.hears(Event::News(news)).into();
    assert!((1..=4).contains(&reads.len()), "{}", reads.len());
    let Some(Command::Read(planned)) = reads.pop_front() else { panic!() };
    assert!(planned.len() <= 128);
    let refused = Failure::Refused("no connection".into());
    assert!(world.hears(Event::Read(planned, Err(refused))).is_empty(), "the store is left alone");
    assert_eq!(world.core.wait(world.at), Some(200 * MS));
    world.passes(200 * MS);
    assert_eq!(world.turns().len(), 1);
}

#[test]
fn three_batches_are_stored_at_a_time_and_a_full_one_waits_for_nobody() {
    let mut world = World::new();
    let mut stores = Vec::new();
    for number in 1..=5 {
        for begun in world.begins([number]) {
            stores.extend(world.ends(begun, Outcome::Reset));
            world.passes(5 * MS);
            stores.extend(world.turns());
        }
    }
    assert_eq!(stores.len(), 3, "{stores:?}");
    let Some(Command::Store(first, how)) = stores.pop() else { panic!() };
    let (rest, _) = batch(world.stored(first, how));
    assert_eq!(rest.len(), 2, "what waited is stored together");
}

// A result is kept while the process lives, and nobody is asked at once.
#[test]
fn what_is_not_stored_is_stored_again_surely_and_less_and_less_often() {
    let mut world = World::new();
    let begun = world.begins_one();
    world.ends(begun, Outcome::Reset);
    let (stored, how) = world.collected();
    // Somebody was first: the rows are locked the next time, which is now.
    let (mut stored, how) = batch(world.not_stored(stored, how, Failure::Outdated));
    assert_eq!(how, How::Sure);
    for (nth, wait) in [50, 100, 200, 400, 800, 1000, 1000].into_iter().enumerate() {
        let failure = match nth % 2 {
            0 => Failure::Outdated,
            _ => Failure::Unknown("no answer".into()),
        };
        assert!(world.not_stored(stored, How::Sure, failure).is_empty());
        assert_eq!(world.core.wait(world.at), Some(wait * MS));
        world.passes(wait * MS);
        let (again, how) = batch(world.turns());
        assert_eq!(how, How::Sure);
        stored = again;
    }
    world.stored(stored, How::Sure);
    assert!(world.core.is_idle());
}

#[test]
fn a_disabled_endpoint_is_parked_once_at_a_time_and_what_waits_of_it_is_forgotten() {
    let mut world = World::new();
    let begun = world.begins_one();
    let commands = world.settles(begun, Outcome::Answered(StatusCode::GONE));
    let is_right = matches!(commands.as_slice(), [Command::CountMissed(..), Command::Park(7)]);
    assert!(is_right, "{commands:?}");
    // It is refused once, and is tried again later.
    let refused = Err(Failure::Refused("no connection".into()));
    assert!(world.hears(Event::Parked(7, refused)).is_empty());
    assert_eq!(world.core.wait(world.at), Some(Duration::from_secs(1)));
    world.passes(Duration::from_secs(1));
    assert!(matches!(world.turns().as_slice(), [Command::Park(7)]));
    assert!(world.hears(Event::Parked(7, Ok(()))).is_empty());
    assert_eq!(world.core.wait(world.at), None);
}

// D-55: a delivery of a previous life is parked, and the retries of this one come when they are due.
#[test]
fn what_is_parked_takes_one_transaction_at_a_time_and_holds_up_nothing_of_an_enabled_endpoint() {
    let mut world = World::new();
    let [read] = <[Command; 1]>::try_from(world.finds(1..=3)).unwrap();
    let _ = world.endpoint.pause(world.at.now);
    let _ = world.endpoint.enable(world.at.now).unwrap();
    let mut waits =
        Delivery::accept(&event(world.at.now), &world.endpoint, world.at.now).with_id(9);
    let attempt = waits.begin(&world.endpoint, world.at.now).unwrap();
    let _ = waits.finish(&attempt, Outcome::Reset, world.at.now).unwrap();
    let rows = vec![PendingRow { shard: 3, account: 1, delivery: waits }];
    assert!(world.hears(Event::News(News { rows, ..News::default() })).is_empty());
    let commands = world.reads(read);
    assert!(matches!(commands.as_slice(), [Command::Park(7)]), "{commands:?}");
    // One that is read meanwhile may be behind what is being parked.
    let [read] = <[Command; 1]>::try_from(world.finds([4])).unwrap();
    assert!(world.reads(read).is_empty(), "it is being parked");
    let commands = world.hears(Event::Parked(7, Ok(())));
    assert!(matches!(commands.as_slice(), [Command::Park(7)]), "{commands:?}");
    assert!(world.hears(Event::Parked(7, Ok(()))).is_empty());
    assert_eq!(world.core.wait(world.at), Some(Duration::from_secs(10)), "for the retry");
}

// A delivery is redelivered between the plan and the read, or between the attempt and its result. The room is that of
// what begins, not that of what was planned.
#[test]
fn six_redeliveries_of_an_endpoint_are_in_flight_whatever_they_were_planned_as() {
    for is_in_flight in [false, true] {
        let (mut world, all) = (World::new(), 1..=8);
        let commands = if is_in_flight {
            let begun = world.begins(all.clone());
            assert_eq!(begun.len(), 8, "first attempts have all the room");
            world.redelivered(all);
            for each in begun {
                assert!(world.ends(each, Outcome::Reset).is_empty());
            }
            let (stored, how) = world.collected();
            world.stored(stored, how)
        } else {
            let commands = world.finds(all.clone());
            world.redelivered(all);
            commands
        };
        let mut begun = world.posts(commands);
        assert!(begun.iter().all(|each| each.attempt.is_manual()), "in flight: {is_in_flight}");
        assert_eq!(begun.len(), 6, "in flight: {is_in_flight}");
        // A new event has the rest.
        assert_eq!(world.begins([9]).len(), 1, "in flight: {is_in_flight}");
        // Once one is stored, the next begins.
        let first = begun.remove(0);
        world.changed.remove(&first.key.delivery);
        let commands = world.settles(first, Outcome::Answered(StatusCode::OK));
        assert_eq!(world.posts(commands).len(), 1, "in flight: {is_in_flight}");
    }
}

// A delivery is parked, read as no longer pending, redelivered and found, and the answer of the read comes last.
#[test]
fn what_became_pending_while_it_was_read_is_read_again() {
    let mut world = World::new();
    let Some(Command::Read(planned)) = world.finds([1]).pop() else { panic!("no read") };
    world.redelivered([1]);
    assert!(world.finds([1]).is_empty(), "it is in hand");
    let commands = world.hears(Event::Read(planned, Ok(vec![None])));
    let begun = world.posts(commands);
    assert!(matches!(begun.as_slice(), [each] if each.attempt.is_manual()), "{begun:?}");
}

#[test]
fn nothing_begins_without_a_lease_or_with_a_wrong_clock() {
    let mut world = World::new();
    let shards = [(3, 1)].into();
    let until = world.at.steady;
    assert!(world.hears(Event::Owned(Owned { shards, until })).is_empty());
    assert!(world.finds([1]).is_empty(), "the lease has ended");
    let owned = |shard, epoch| {
        Event::Owned(Owned { shards: [(shard, epoch)].into(), until: Duration::MAX })
    };
    world.at.is_true = false;
    assert!(world.hears(owned(3, 1)).is_empty(), "the clock is wrong");
    world.at.is_true = true;
    let mut found = world.turns();
    // The shard goes while its row is read, with all others or alone.
    for (rest, epoch) in
        [(Event::Owned(Owned::default()), 1), (owned(4, 1), 1), (Event::Owned(Owned::default()), 2)]
    {
        let [read] = <[Command; 1]>::try_from(found).unwrap();
        world.hears(rest);
        let nothing = world.reads(read);
        assert!(nothing.is_empty(), "{nothing:?}");
        world.hears(owned(3, epoch));
        found = world.finds([1]);
    }
    assert!(matches!(found.as_slice(), [Command::Read(_)]), "{found:?}");
}

#[test]
fn a_number_that_is_anothers_has_everything_found_again_once() {
    let mut world = World::new();
    let begun = world.begins_one();
    let other = EndpointHealth::new(8, world.at.now);
    let delivery = Delivery::accept(&event(world.at.now), &other, world.at.now).with_id(1);
    let rows = vec![PendingRow { shard: 3, account: 1, delivery }];
    let news = |again| News { rows: rows.clone(), again, ..News::default() };
    let commands = world.hears(Event::News(news(false)));
    assert!(matches!(commands.as_slice(), [Command::LookAgain(Some(_))]), "{commands:?}");
    assert!(world.hears(Event::News(news(true))).is_empty(), "it is known");
    // Once the other has ended, this one is found.
    let commands = world.settles(begun, Outcome::Reset);
    assert!(matches!(commands.as_slice(), [Command::LookAgain(None)]), "{commands:?}");
    assert!(matches!(world.hears(Event::News(news(true))).as_slice(), [Command::Read(_)]));
}

#[test]
fn a_sender_that_stops_begins_nothing_and_stores_what_ends() {
    let mut world = World::new();
    let begun = world.begins_one();
    let [read] = <[Command; 1]>::try_from(world.finds([2])).unwrap();
    world.core.stop();
    assert!(world.reads(read).is_empty());
    assert!(world.finds([3]).is_empty());
    assert!(!world.core.is_idle());
    world.settles(begun, Outcome::Unsent);
    assert!(world.core.is_idle());
}

#[test]
fn an_attempt_that_could_not_be_made_is_made_a_second_later() {
    let now = Timestamp::from_unix(1_770_000_000).unwrap();
    let at = |seconds| now.saturating_add(Duration::from_secs(seconds));
    let event = event(now);
    let endpoint = EndpointHealth::new(1, now);
    for (outcome, is_late) in
        [(Outcome::Unsent, false), (Outcome::Unsent, true), (Outcome::Refused, false)]
    {
        let stored = Delivery::accept(&event, &endpoint, now);
        let mut begun = stored;
        let attempt = begun.begin(&endpoint, now).unwrap();
        let (delivery, of) = (7, 1);
        let ended =
            [EndedAttempt { delivery, endpoint: of, attempt, outcome, at: at(2), response: None }];
        let rows = BTreeMap::from([(delivery, if is_late { stored } else { begun })]);
        let endpoints = BTreeMap::from([(of, endpoint)]);
        let mut settled = RetrySchedule::default().settle(&ended, &rows, &endpoints);
        let (before, said) = (settled.clone(), format!("{outcome:?}, late: {is_late}"));
        postpone(&mut settled);
        if is_late || outcome != Outcome::Unsent {
            assert_eq!(settled, before, "{said}");
            continue;
        }
        let due = at(3);
        assert_eq!(settled.again, [(delivery, of, due)], "{said}");
        assert_eq!(settled.log[0].1.next_at, Some(due), "{said}");
        let [(_, row)] = settled.deliveries.as_slice() else { panic!("{settled:?}") };
        let waits = (DeliveryStatus::Waiting, Some(due));
        assert_eq!((row.status(), row.due(at(2))), waits, "{said}");
        assert_eq!(row.if_version(), before.deliveries[0].1.if_version(), "{said}");
    }
}
