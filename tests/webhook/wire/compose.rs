//! Events made by the service: what holds of each type, and the bytes that are sent.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::json::{JsonObject, MAX_JSON_LEN};
use call_assistant::model::{Appointment, Call, Contact};
use call_assistant::webhook::event::{
    ApiVersion, Event, EventBody, EventData, EventType, NameSource, NewEvent, NewEventError,
    Origin, OriginSource, UsageWatch,
};

use super::events::{CALL, body, golden};
use super::{NOW, at, signer, verified};

fn new_event() -> NewEvent {
    with_origin(Origin::voice())
}

fn with_origin(origin: Origin) -> NewEvent {
    NewEvent::new(
        EventId::parse("evt_1").unwrap(),
        AccountId::parse("acct_1").unwrap(),
        ApiVersion::parse("2026-01-15").unwrap(),
        origin,
        Timestamp::parse("2026-01-01T09:34:11Z").unwrap(),
    )
}

fn object(text: &str) -> JsonObject {
    JsonObject::parse(text).unwrap()
}

fn appointment(text: &str) -> Appointment {
    object(text).into()
}

fn call() -> Call {
    Call::from_json(CALL.as_bytes()).unwrap()
}

/// What was composed reads as the same event.
fn read(body: &EventBody) -> Event {
    Event::from_bytes_verified_earlier(body.as_bytes()).unwrap()
}

/// Creates an event with these data, by the method of its type.
fn composed(event: NewEvent, data: &EventData) -> EventBody {
    use NameSource::Curated;
    let body = match data {
        EventData::CallEnded(call) => event.call_ended(call),
        EventData::CallTransferred(call) => event.call_transferred(call),
        EventData::AppointmentCreated(appointment) => event.appointment_created(appointment),
        EventData::AppointmentUpdated(appointment) => event.appointment_updated(appointment),
        EventData::AppointmentCancelled(appointment) => event.appointment_cancelled(appointment),
        EventData::ContactCreated(contact) => event.contact_created(contact, Curated),
        EventData::ContactUpdated(contact) => event.contact_updated(contact, Curated),
        EventData::UsageThresholdReached(counters) => event.usage_threshold_reached(counters),
        EventData::Ping { message, .. } => event.ping(message.as_str()),
        other => panic!("no method of NewEvent is called for {}", other.event_type()),
    };
    body.unwrap()
}

/// EVT-1, EVT-4, D-63, DEL-13: every type, byte for byte.
#[test]
fn each_type_is_written_as_specified() {
    for (event_type, data) in golden() {
        let body = body(event_type.as_str(), &data);
        let event = Event::from_bytes_verified_earlier(body.as_bytes()).unwrap();
        let made = composed(new_event(), &event.data);
        assert_eq!(made.as_str(), body, "{event_type}");
        assert_eq!(made.event_type(), &event_type, "{event_type}");
        assert_eq!(made.id().as_str(), "evt_1");
        assert_eq!(made.account_id().as_str(), "acct_1");
        assert_eq!(made.created_at(), event.created_at, "{event_type}");
    }
}

/// DEL-13: stored and taken up again, a body is the same to the byte, however it was written.
#[test]
fn a_stored_body_is_the_same_bytes() {
    let odd = "æ \u{2028} \"quoted\"";
    let made = with_origin(Origin::new(OriginSource::from(odd))).ping(odd).unwrap();
    let event = read(&made);
    assert_eq!(event.origin.unwrap().source.as_str(), odd);
    assert!(matches!(event.data, EventData::Ping { message, .. } if message == odd));
    assert_eq!(EventBody::from_stored(made.as_bytes()).unwrap(), made);
    let shown = format!("{made:?}");
    assert!(shown.contains("evt_1") && !shown.contains("quoted"), "{shown}");
    let error = serde_json::from_str::<EventBody>("5").unwrap_err().to_string();
    assert!(error.contains("expected a string: an event's body"), "{error}");
    let json = serde_json::to_string(&made).unwrap();
    assert_eq!(serde_json::from_str::<EventBody>(&json).unwrap(), made);

    let spaced = made.as_str().replace(r#"","#, r#"" , "#);
    assert_eq!(EventBody::from_stored(spaced.as_bytes()).unwrap().as_str(), spaced);

    let error = serde_json::from_str::<EventBody>(r#""{\"id\":\"secret\"}""#).unwrap_err();
    assert!(error.to_string().starts_with("id: event id does not begin with evt_"), "{error}");
}

/// What a receiver's own tests need: an event in, a request out that verifies.
#[test]
fn a_composed_event_is_delivered_and_read() {
    let made = new_event().call_ended(&call()).unwrap();
    let request = made.signed_request(&signer(), at(NOW));
    assert_eq!(request.headers()["x-service-event"], "call.ended");
    assert_eq!(request.headers()["x-service-delivery"], "evt_1");
    let verified = verified(&request);
    assert_eq!(verified.event(), Ok(read(&made)));
    assert_eq!(verified.bytes(), made.as_bytes());
}

/// EVT-9
#[test]
fn a_call_has_ended_once_its_summary_is_ready() {
    let mut call = call();
    let ended_at = call.ended_at.take();
    assert_eq!(new_event().call_ended(&call), Err(NewEventError::CallNotEnded));
    call.ended_at = ended_at;
    call.summary = None;
    assert_eq!(new_event().call_ended(&call), Err(NewEventError::SummaryNotReady));
}

/// EVT-7: a cancelled appointment says so, whatever it said before.
#[test]
fn a_cancelled_appointment_has_that_status() {
    for (before, after) in [
        (r#"{"status":"confirmed","id":"a"}"#, r#"{"status":"cancelled","id":"a"}"#),
        (r#"{"status":"cancelled"}"#, r#"{"status":"cancelled"}"#),
        (r#"{"id":"a"}"#, r#"{"id":"a","status":"cancelled"}"#),
        (r#"{"status":null,"x":1e2,"status":1}"#, r#"{"status":"cancelled","x":1e2}"#),
        ("{}", r#"{"status":"cancelled"}"#),
        (r#"{"\ud800":1,"status":"confirmed"}"#, r#"{"\ud800":1,"status":"cancelled"}"#),
    ] {
        let made = new_event().appointment_cancelled(&appointment(before)).unwrap();
        assert!(made.as_str().ends_with(&format!(r#""data":{{"object":{after}}}}}"#)), "{made:?}");
    }
}

/// EVT-7: cancelled, then created, with a new id.
#[test]
fn a_voice_reschedule_is_a_pair() {
    let id = || EventId::parse("evt_2").unwrap();
    let old = appointment(r#"{"id":"appt_1","status":"confirmed"}"#);
    let new = appointment(r#"{"id":"appt_2","status":"confirmed"}"#);

    let [cancelled, created] = new_event().voice_reschedule(id(), &old, &new).unwrap();
    assert_eq!(cancelled, new_event().appointment_cancelled(&old).unwrap());
    assert_eq!((created.id(), created.event_type()), (&id(), &EventType::AppointmentCreated));
    let EventData::AppointmentCreated(read_back) = read(&created).data else { panic!() };
    assert_eq!(read_back, new);
    assert_eq!(created.account_id(), cancelled.account_id());

    let dashboard = || with_origin(Origin::new(OriginSource::from("dashboard")));
    let moved = appointment(r#"{"id":"appt_1","status":"confirmed","at":"later"}"#);
    let unnamed = appointment(r#"{"status":"confirmed"}"#);
    let first_id = EventId::parse("evt_1").unwrap();
    for (refused, error) in [
        (new_event().voice_reschedule(id(), &old, &moved), NewEventError::SameAppointment),
        (new_event().voice_reschedule(id(), &unnamed, &unnamed), NewEventError::SameAppointment),
        (new_event().voice_reschedule(first_id, &old, &new), NewEventError::SameEventId),
        (dashboard().voice_reschedule(id(), &old, &new), NewEventError::NotVoice),
    ] {
        assert_eq!(refused, Err(error));
    }
    // The specification does not say that the id is called `id`.
    assert!(new_event().voice_reschedule(id(), &unnamed, &new).is_ok());
}

/// EVT-6: no event without a person behind the name.
#[test]
fn an_inferred_name_makes_no_event_until_approved() {
    let contact = Contact::from(object(r#"{"display_name":"Kari"}"#));
    for (source, refused) in [
        (NameSource::Curated, None),
        (NameSource::Imported, None),
        (NameSource::Inferred, Some(NewEventError::InferredName)),
    ] {
        assert_eq!(new_event().contact_created(&contact, source).err(), refused, "{source:?}");
        assert_eq!(new_event().contact_updated(&contact, source).err(), refused, "{source:?}");
    }
}

/// EVT-4: usage has no object.
#[test]
fn usage_counters_have_no_object() {
    let refused = new_event().usage_threshold_reached(&object(r#"{"object":1}"#));
    assert_eq!(refused, Err(NewEventError::ObjectInCounters));
    // Nor is it hidden by a name that no text can hold, or by an escape.
    for counters in
        [r#"{"\ud800":1,"object":1}"#, r#"{"object":1,"\ud800":1}"#, r#"{"\u006fbject":1}"#]
    {
        let refused = new_event().usage_threshold_reached(&object(counters));
        assert_eq!(refused, Err(NewEventError::ObjectInCounters), "{counters}");
    }
}

/// What is created can be read: an event that is too long is refused where it is made.
#[test]
fn an_event_is_no_longer_than_what_is_read() {
    let empty = new_event().ping("").unwrap().as_bytes().len();
    let longest = new_event().ping("m".repeat(MAX_JSON_LEN - empty)).unwrap();
    assert_eq!(longest.as_bytes().len(), MAX_JSON_LEN);
    assert_eq!(EventBody::from_stored(longest.as_str()).as_ref(), Ok(&longest));
    assert!(Event::from_bytes_verified_earlier(longest.as_bytes()).is_ok());

    let error = new_event().ping("m".repeat(MAX_JSON_LEN + 1 - empty)).unwrap_err();
    assert!(matches!(error, NewEventError::TooLong { .. }), "{error}");
    assert_eq!(error.to_string(), "event has 16777217 bytes, more than 16777216");
    // What counts is the length as written.
    let escaped = new_event().ping("\u{1}".repeat(MAX_JSON_LEN / 6 + 1)).unwrap_err();
    assert!(matches!(escaped, NewEventError::TooLong { .. }), "{escaped:?}");
}

/// EVT-5, D-61: exactly at three quarters, whatever the numbers.
#[test]
fn the_threshold_is_three_quarters() {
    const QUARTERS: u64 = u64::MAX / 4 * 3;
    let below =
        [(0, 0), (5, 0), (0, 1), (2, 3), (2, 4), (74, 100), (750, 1001), (QUARTERS, u64::MAX)];
    let reached = [(1, 1), (3, 3), (3, 4), (75, 100), (751, 1001), (QUARTERS + 3, u64::MAX)];
    let reached = reached.into_iter().chain([(u64::MAX, u64::MAX), (u64::MAX, 1)]);
    let reached = reached.map(|of| (of, true));
    for ((used, included), reached) in below.map(|of| (of, false)).into_iter().chain(reached) {
        let fired = UsageWatch::default().record(at(NOW), used, included);
        assert_eq!(fired, reached, "{used} of {included}");
    }
}

/// D-61: once per period, across a restart, a change of plan and late readings.
#[test]
fn the_threshold_is_reported_once_per_period() {
    let [january, february, march] = [at(NOW), at(NOW + 31 * 86_400), at(NOW + 59 * 86_400)];
    let mut watch = UsageWatch::default();
    for (period, used, included, fires) in [
        (january, 74, 100, false),
        (january, 80, 100, true),
        (january, 74, 100, false),
        (january, 90, 100, false),
        (january, 150, 200, false),
        (february, 10, 200, false),
        // A smaller plan: the same usage is now above.
        (february, 10, 12, true),
        (january, 99, 100, false),
        (february, 12, 12, false),
        (march, 9, 12, true),
    ] {
        let stored = serde_json::to_string(&watch).unwrap();
        watch = serde_json::from_str(&stored).unwrap();
        let fired = watch.record(period, used, included);
        assert_eq!(fired, fires, "{used} of {included} in {period}");
    }
}
