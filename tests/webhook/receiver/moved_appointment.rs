//! EVT-7: the two events of an appointment that was moved by voice.

use call_assistant::id::{AccountId, EventId};
use call_assistant::json::JsonObject;
use call_assistant::model::Appointment;
use call_assistant::webhook::event::{
    ApiVersion, Event, EventData, NewEvent, Origin, OriginSource,
};
use call_assistant::webhook::receiver::MovedAppointment;

use crate::dice::at;

fn half(kind: &str, id: &str, made: i64, origin: Origin, contact: &str) -> Event {
    let object = format!(r#"{{"id":"{id}","status":"x","contact_id":"{contact}"}}"#);
    let appointment = Appointment::from(JsonObject::parse(&object).unwrap());
    let version = ApiVersion::parse("2026-01-15").unwrap();
    let event = EventId::parse(&format!("evt_{id}")).unwrap();
    let account = AccountId::parse("acct_1").unwrap();
    let new = NewEvent::new(event, account, version, origin, at(made));
    let body = match kind {
        "created" => new.appointment_created(&appointment).unwrap(),
        "updated" => new.appointment_updated(&appointment).unwrap(),
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
    let pair = |one: &'_ Event, other: &'_ Event, fields: &[&str]| {
        let pair = MovedAppointment::find(one, [other], fields, MovedAppointment::SPAN);
        pair.map(|pair| [pair.cancelled.id.clone(), pair.created.id.clone()])
    };
    for (one, other) in [(&old, &new), (&new, &old)] {
        let expected = Some([old.id.clone(), new.id.clone()]);
        assert_eq!(pair(one, other, &["contact_id"]), expected, "{}", one.id);
    }
    for (what, other) in [
        ("made by a person", half("created", "appt_2", 2_000, dashboard(), "cont_1")),
        ("before", half("created", "appt_2", 999, voice(), "cont_1")),
        ("long after", half("created", "appt_2", 61_001, voice(), "cont_1")),
        ("somebody else's", half("created", "appt_2", 2_000, voice(), "cont_2")),
        ("the same", half("created", "appt_1", 2_000, voice(), "cont_1")),
        ("no creation", half("updated", "appt_2", 2_000, voice(), "cont_1")),
        ("two cancellations", half("cancelled", "appt_2", 2_000, voice(), "cont_1")),
    ] {
        assert_eq!(pair(&old, &other, &["contact_id"]), None, "{what}");
    }
    let mut elsewhere = new.clone();
    elsewhere.account_id = AccountId::parse("acct_2").unwrap();
    assert_eq!(pair(&old, &elsewhere, &[]), None);
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
    assert!(pair(&old_one, &new_one, &["id"]).is_some());
    // The last millisecond, and a field that only one of them has.
    let last = half("created", "appt_2", 61_000, voice(), "cont_1");
    assert!(pair(&old, &last, &["room"]).is_some());

    let other = half("created", "appt_3", 3_000, voice(), "cont_1");
    let find = |others: &[&Event]| {
        let pair =
            MovedAppointment::find(&old, others.iter().copied(), &[], MovedAppointment::SPAN);
        pair.map(|pair| pair.created.id.clone())
    };
    assert_eq!(find(&[]), None);
    assert_eq!(find(&[&old, &new]), Some(new.id.clone()));
    assert_eq!(find(&[&new, &other]), None, "either may be the one");
    assert_eq!(find(&[&new, &new.clone()]), Some(new.id.clone()), "it came twice");
}
