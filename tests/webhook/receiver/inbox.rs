//! EVT-8, D-46, D-60: each event acted on once, in any order; and the pairs of a voice reschedule.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::id::{AccountId, EventId};
use call_assistant::json::JsonObject;
use call_assistant::model::Appointment;
use call_assistant::webhook::WebhookResponse;
use call_assistant::webhook::event::{
    ApiVersion, Event, EventData, NewEvent, Origin, OriginSource,
};
use call_assistant::webhook::receiver::{CLAIM_LEASE, Claim, Inbox, InboxEntry, KEEP, Version};
use call_assistant::webhook::receiver::{Pairing, RESCHEDULE_SPAN, Reschedule};

use crate::dice::at;
use crate::dice::{Dice, HOUR, MINUTE, SECOND};

fn account(name: &str) -> AccountId {
    AccountId::parse(name).unwrap()
}

fn event(name: &str) -> EventId {
    EventId::parse(&format!("evt_{name}")).unwrap()
}

fn taken(arrival: Claim) -> InboxEntry {
    match arrival {
        Claim::Process(entry) => entry,
        other => panic!("{other:?}"),
    }
}

/// All states of an entry and everything that can happen to each.
#[test]
fn the_life_of_an_entry() {
    let (now, before, after) = (at(0), at(59_999), at(60_000));
    let entry = taken(InboxEntry::arrive(None, CLAIM_LEASE, now));
    assert_eq!(InboxEntry::arrive(Some(&entry), CLAIM_LEASE, before), Claim::Busy);
    // Whoever took it has died.
    let again = taken(InboxEntry::arrive(Some(&entry), CLAIM_LEASE, after));
    assert_eq!(InboxEntry::arrive(Some(&again), CLAIM_LEASE, after), Claim::Busy);
    // Or said that it failed.
    let failed = entry.failed();
    taken(InboxEntry::arrive(Some(&failed), CLAIM_LEASE, now));

    let done = entry.done(now);
    for instant in [now, after, at(i64::from(i32::MAX))] {
        assert_eq!(InboxEntry::arrive(Some(&done), CLAIM_LEASE, instant), Claim::Duplicate);
    }
    assert_eq!(done.failed(), done);
    assert_eq!(done.done(after), done);

    assert!(!entry.is_forgettable(at(i64::from(i32::MAX) * 1_000)));
    assert_eq!((CLAIM_LEASE.as_secs(), KEEP.as_secs()), (60, 2_678_400), "a minute; 31 days");
    let last = now.checked_add(KEEP).unwrap();
    assert!(!done.is_forgettable(last));
    assert!(done.is_forgettable(last.checked_add(Duration::from_nanos(1)).unwrap()));
}

/// D-46.
#[test]
fn what_is_answered() {
    let entry = taken(InboxEntry::arrive(None, CLAIM_LEASE, at(0)));
    assert_eq!(Claim::Process(entry).receipt(), None);
    assert_eq!(Claim::Duplicate.receipt(), Some(WebhookResponse::Duplicate));
    assert_eq!(Claim::Duplicate.receipt().unwrap().status(), 204);
    assert_eq!(Claim::Busy.receipt(), Some(WebhookResponse::Unavailable));
    assert_eq!(Claim::Busy.receipt().unwrap().status(), 503);
}

/// A store keeps entries as text.
#[test]
fn an_entry_as_it_is_stored() {
    let entry = taken(InboxEntry::arrive(None, CLAIM_LEASE, at(0)));
    for (entry, text) in [
        (entry, r#"{"taken":{"until":"2026-01-01T00:01:00Z"}}"#),
        (entry.done(at(0)), r#"{"done":{"at":"2026-01-01T00:00:00Z"}}"#),
        (entry.failed(), r#"{"taken":{"until":"0000-01-01T00:00:00Z"}}"#),
    ] {
        assert_eq!(serde_json::to_string(&entry).unwrap(), text);
        assert_eq!(serde_json::from_str::<InboxEntry>(text).unwrap(), entry);
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
        // The service's six attempts, and one by hand, which meets a receiver that works.
        for wait in [0, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, 24 * HOUR] {
            let millis = wait + dice.up_to(SECOND);
            let now = at(millis);
            match InboxEntry::arrive(row.as_ref(), CLAIM_LEASE, now) {
                Claim::Process(entry) => {
                    assert!(!done && millis >= busy_until, "seed {seed}");
                    row = Some(entry);
                    busy_until = millis + MINUTE;
                    let fate = if wait == 24 * HOUR { 3 } else { dice.up_to(4) };
                    match fate {
                        0 => {}
                        1 => {
                            acted += 1;
                            died += 1;
                        }
                        2 => {
                            row = Some(entry.failed());
                            busy_until = 0;
                        }
                        _ => {
                            acted += 1;
                            done = true;
                            row = Some(entry.done(now));
                        }
                    }
                }
                Claim::Duplicate => assert!(done, "seed {seed}"),
                // Whoever took it may still be at work, or else its next copy is acted on.
                Claim::Busy => assert!(!done && millis < busy_until, "seed {seed}"),
            }
        }
        assert!(done, "seed {seed}: never acted on");
        assert_eq!(acted, died + 1, "seed {seed}");
    }
}

#[test]
fn the_inbox_in_memory_dedupes_by_account_and_event() {
    let mut inbox = Inbox::new(10);
    let (one, two) = (account("acct_1"), account("acct_2"));
    let first = taken(inbox.arrive(&one, &event("1"), CLAIM_LEASE, at(0)));
    // D-60: another account's event of the same id is another event.
    let second = taken(inbox.arrive(&two, &event("1"), CLAIM_LEASE, at(0)));
    assert_eq!(inbox.arrive(&one, &event("1"), CLAIM_LEASE, at(0)), Claim::Busy);
    inbox.done(&one, &event("1"), at(0));
    inbox.done(&one, &event("1"), at(1));
    inbox.failed(&one, &event("1"), first);
    inbox.failed(&one, &event("1"), first.done(at(0)));
    assert_eq!(inbox.arrive(&one, &event("1"), CLAIM_LEASE, at(0)), Claim::Duplicate);
    inbox.failed(&two, &event("1"), second);
    assert_eq!(inbox.len(), 1);
    taken(inbox.arrive(&two, &event("1"), CLAIM_LEASE, at(0)));
}

/// EVT-8: whoever was too slow and fails does not give away what another has taken since.
#[test]
fn a_claim_that_ran_out_is_no_longer_given_back() {
    let mut inbox = Inbox::new(10);
    let one = account("acct_1");
    let slow = taken(inbox.arrive(&one, &event("1"), CLAIM_LEASE, at(0)));
    let other = taken(inbox.arrive(&one, &event("1"), CLAIM_LEASE, at(60_000)));
    inbox.failed(&one, &event("1"), slow);
    assert_eq!(inbox.arrive(&one, &event("1"), CLAIM_LEASE, at(60_000)), Claim::Busy);
    inbox.failed(&one, &event("1"), other);
    taken(inbox.arrive(&one, &event("1"), CLAIM_LEASE, at(60_000)));
    // Done is done, whoever did it.
    inbox.done(&one, &event("1"), at(60_000));
    assert_eq!(inbox.arrive(&one, &event("1"), CLAIM_LEASE, at(60_000)), Claim::Duplicate);
}

#[test]
fn the_inbox_in_memory_is_bounded() {
    let mut inbox = Inbox::new(2);
    let one = account("acct_1");
    for name in ["1", "2", "3"] {
        taken(inbox.arrive(&one, &event(name), CLAIM_LEASE, at(0)));
        inbox.done(&one, &event(name), at(0));
    }
    // The first one that was done is forgotten.
    assert_eq!(inbox.len(), 2);
    assert_eq!(inbox.arrive(&one, &event("2"), CLAIM_LEASE, at(0)), Claim::Duplicate);
    taken(inbox.arrive(&one, &event("1"), CLAIM_LEASE, at(0)));
    taken(inbox.arrive(&one, &event("4"), CLAIM_LEASE, at(0)));
    // Full of what is being acted on: nothing of that is forgotten before its time has run out.
    assert_eq!(inbox.arrive(&one, &event("5"), CLAIM_LEASE, at(0)), Claim::Busy);
    assert_eq!(inbox.arrive(&one, &event("1"), CLAIM_LEASE, at(0)), Claim::Busy);
    let fifth = taken(inbox.arrive(&one, &event("5"), CLAIM_LEASE, at(60_000)));
    taken(inbox.arrive(&one, &event("7"), CLAIM_LEASE, at(60_000)));

    // Word of an event that was never taken here finds no room, and is not kept either.
    inbox.done(&one, &event("6"), at(60_000));
    assert_eq!(inbox.len(), 2);
    assert!(!inbox.is_empty());
    for name in ["5", "6", "7"] {
        assert_eq!(inbox.arrive(&one, &event(name), CLAIM_LEASE, at(60_000)), Claim::Busy);
    }
    // Where there is room, it is.
    inbox.failed(&one, &event("5"), fifth);
    inbox.done(&one, &event("6"), at(60_000));
    assert_eq!(inbox.arrive(&one, &event("6"), CLAIM_LEASE, at(60_000)), Claim::Duplicate);

    let mut none = Inbox::new(0);
    assert_eq!(none.arrive(&one, &event("1"), CLAIM_LEASE, at(0)), Claim::Busy);
    assert!(none.is_empty());
}

/// EVT-8: what handlers have taken and dropped does not take the room of what is known as done.
#[test]
fn the_inbox_in_memory_forgets_what_was_abandoned() {
    const DAY: i64 = 24 * HOUR;
    let mut inbox = Inbox::new(100);
    let one = account("acct_1");
    for number in 0..99 {
        taken(inbox.arrive(&one, &event(&format!("dropped_{number}")), CLAIM_LEASE, at(0)));
    }
    let acted_on = |inbox: &mut Inbox, name: &str, now| {
        taken(inbox.arrive(&one, &event(name), CLAIM_LEASE, now));
        inbox.done(&one, &event(name), now);
    };
    acted_on(&mut inbox, "1", at(0));
    // Within a day, who took it may still be at it.
    acted_on(&mut inbox, "2", at(DAY));
    assert_eq!(inbox.len(), 100);
    let later = at(DAY + 2 * MINUTE);
    acted_on(&mut inbox, "3", later);
    assert_eq!(inbox.len(), 2);
    for name in ["2", "3"] {
        assert_eq!(inbox.arrive(&one, &event(name), CLAIM_LEASE, later), Claim::Duplicate);
    }
}

/// An eighth of the room is theirs, and is not looked through for them.
#[test]
fn the_inbox_in_memory_leaves_a_few_that_were_abandoned() {
    let one = account("acct_1");
    for (dropped, left) in [(12, 100), (13, 100 - 13 + 1)] {
        let mut inbox = Inbox::new(100);
        for number in 0..100 {
            taken(inbox.arrive(&one, &event(&number.to_string()), CLAIM_LEASE, at(0)));
            if number >= dropped {
                inbox.done(&one, &event(&number.to_string()), at(0));
            }
        }
        let day_after = at(24 * HOUR).saturating_add(CLAIM_LEASE);
        taken(inbox.arrive(&one, &event("next"), CLAIM_LEASE, day_after));
        assert_eq!(inbox.len(), left, "{dropped}");
    }
}

/// Done twice is done once: it is forgotten in its turn, and makes room for one.
#[test]
fn the_inbox_in_memory_forgets_each_event_once() {
    let mut inbox = Inbox::new(2);
    let one = account("acct_1");
    for (name, times) in [("1", 2), ("2", 1)] {
        taken(inbox.arrive(&one, &event(name), CLAIM_LEASE, at(0)));
        for _ in 0..times {
            inbox.done(&one, &event(name), at(0));
        }
    }
    taken(inbox.arrive(&one, &event("3"), CLAIM_LEASE, at(0)));
    assert_eq!(inbox.arrive(&one, &event("2"), CLAIM_LEASE, at(0)), Claim::Duplicate);
    taken(inbox.arrive(&one, &event("4"), CLAIM_LEASE, at(0)));
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
                        row.unwrap_or_else(|| taken(InboxEntry::arrive(None, CLAIM_LEASE, at(0))));
                    rows.insert(key, row.done(at(now)));
                }
                1 => {
                    if let Some(row) = rows.get_mut(&key) {
                        inbox.failed(&key.0, &key.1, *row);
                        *row = row.failed();
                    }
                }
                _ => {
                    let arrival = InboxEntry::arrive(rows.get(&key), CLAIM_LEASE, at(now));
                    assert_eq!(
                        inbox.arrive(&key.0, &key.1, CLAIM_LEASE, at(now)),
                        arrival,
                        "seed {seed}"
                    );
                    if let Claim::Process(entry) = arrival {
                        rows.insert(key, entry);
                    }
                }
            }
        }
    }
}

/// EVT-8: in whatever order the events of an object arrive, the same state remains.
#[test]
fn updates_in_every_order() {
    // An object's time, its event's, and what it is then. The object's own time counts first: an
    // event may be made late of what was so long before.
    let updates = [
        (Some(10), 60, "booked"),
        (Some(20), 25, "moved"),
        (Some(20), 26, "moved again within the same second"),
        (Some(40), 11, "cancelled"),
    ];
    let mut orders = 0;
    permute(&mut [0, 1, 2, 3], 0, &mut |order| {
        let mut stored: Option<(Version, &str)> = None;
        for index in order {
            let (own, event, state) = updates[*index];
            let own = own.map_or(String::from("null"), |own| format!(r#""{}""#, at(own)));
            let object = JsonObject::parse(&format!(r#"{{"changed_at":{own}}}"#)).unwrap();
            let version = Version::of(&object, &["updated_at", "changed_at"], at(event));
            if version.replaces(stored.map(|(version, _)| version)) {
                stored = Some((version, state));
            }
        }
        assert_eq!(stored.unwrap().1, "cancelled", "{order:?}");
        orders += 1;
    });
    assert_eq!(orders, 24);
}

fn permute(items: &mut [usize], from: usize, each: &mut impl FnMut(&[usize])) {
    if from == items.len() {
        return each(items);
    }
    for other in from..items.len() {
        items.swap(from, other);
        permute(items, from + 1, each);
        items.swap(from, other);
    }
}

#[test]
fn where_an_objects_time_stands() {
    let fields = ["updated_at", "created_at"];
    for (object, expected) in [
        (r#"{"updated_at":"2026-01-01T00:00:05Z","created_at":"2026-01-01T00:00:01Z"}"#, 5_000),
        (r#"{"created_at":"2026-01-01T00:00:01+00:00"}"#, 1_000),
        (r#"{"updated_at":null,"created_at":"2026-01-01T00:00:01Z"}"#, 1_000),
        (r#"{"updated_at":"today"}"#, 9_000),
        (r#"{"updated_at":5}"#, 9_000),
        (r#"{}"#, 9_000),
    ] {
        let version = Version::of(&JsonObject::parse(object).unwrap(), &fields, at(9_000));
        assert_eq!(version, Version::new(at(expected), at(9_000)), "{object}");
    }
    // Equally recent: the one that arrives later.
    let version = Version::new(at(0), at(0));
    assert!(version.replaces(Some(version)));
    assert!(!version.replaces(Some(Version::new(at(0), at(1)))));
    assert!(version.replaces(None));
}

fn half(kind: &str, id: &str, made: i64, origin: Origin, contact: &str) -> Event {
    let object = format!(r#"{{"id":"{id}","status":"x","contact_id":"{contact}"}}"#);
    let appointment = Appointment::from(JsonObject::parse(&object).unwrap());
    let version = ApiVersion::parse("2026-01-15").unwrap();
    let new = NewEvent::new(event(id), account("acct_1"), version, origin, at(made));
    let body = match kind {
        "created" => new.appointment_created(&appointment),
        "updated" => new.appointment_updated(&appointment),
        _ => new.appointment_cancelled(&appointment.cancelled()).unwrap(),
    };
    Event::from_bytes_verified_earlier(body.as_bytes()).unwrap()
}

/// EVT-7: the two events of a voice reschedule, in either order, and everything that is none.
#[test]
fn the_halves_of_a_reschedule() {
    let voice = Origin::voice;
    let dashboard = || Origin::new(OriginSource::from("dashboard"));
    let old = half("cancelled", "appt_1", 1_000, voice(), "cont_1");
    let new = half("created", "appt_2", 2_000, voice(), "cont_1");
    for (one, other) in [(&old, &new), (&new, &old)] {
        let pair = Reschedule::of(one, other, &["contact_id"], RESCHEDULE_SPAN).unwrap();
        assert_eq!((&pair.cancelled.id, &pair.created.id), (&old.id, &new.id));
    }
    for (what, other) in [
        ("by hand", half("created", "appt_2", 2_000, dashboard(), "cont_1")),
        ("before", half("created", "appt_2", 999, voice(), "cont_1")),
        ("long after", half("created", "appt_2", 61_001, voice(), "cont_1")),
        ("somebody else's", half("created", "appt_2", 2_000, voice(), "cont_2")),
        ("the same", half("created", "appt_1", 2_000, voice(), "cont_1")),
        ("no creation", half("updated", "appt_2", 2_000, voice(), "cont_1")),
        ("two cancellations", half("cancelled", "appt_2", 2_000, voice(), "cont_1")),
    ] {
        let pair = Reschedule::of(&old, &other, &["contact_id"], RESCHEDULE_SPAN);
        assert_eq!(pair, None, "{what}");
    }
    let mut elsewhere = new.clone();
    elsewhere.account_id = account("acct_2");
    assert_eq!(Reschedule::of(&old, &elsewhere, &[], RESCHEDULE_SPAN), None);
    // The specification does not say that an appointment's id is called `id`.
    let unnamed = |kind, made| {
        let mut event = half(kind, "appt_1", made, voice(), "cont_1");
        let object = JsonObject::parse(r#"{"number":1}"#).unwrap();
        match &mut event.data {
            EventData::AppointmentCancelled(it) | EventData::AppointmentCreated(it) => {
                *it = Appointment::from(object);
            }
            other => panic!("{other:?}"),
        }
        event
    };
    let (old_one, new_one) = (unnamed("cancelled", 1_000), unnamed("created", 2_000));
    assert!(Reschedule::of(&old_one, &new_one, &["id"], RESCHEDULE_SPAN).is_some());
    // The last millisecond, and a field that only one of them has.
    let last = half("created", "appt_2", 61_000, voice(), "cont_1");
    assert!(Reschedule::of(&old, &last, &["room"], RESCHEDULE_SPAN).is_some());

    let other = half("created", "appt_3", 3_000, voice(), "cont_1");
    let find = |others: &[&Event]| {
        let pairing = Reschedule::find(&old, others.iter().copied(), &[], RESCHEDULE_SPAN);
        match pairing {
            Pairing::None => None,
            Pairing::One(pair) => Some(Some(pair.created.id.clone())),
            Pairing::Ambiguous => Some(None),
        }
    };
    assert_eq!(find(&[]), None);
    assert_eq!(find(&[&old, &new]), Some(Some(new.id.clone())));
    assert_eq!(find(&[&new, &other]), Some(None));
    assert_eq!(find(&[&new, &new.clone()]), Some(Some(new.id.clone())), "it came twice");
}
