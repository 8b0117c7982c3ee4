//! Events made by the service: what holds of each type, and the bytes that are sent.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, AppointmentId, CallId, EventId};
use call_assistant::json::{JsonObject, MAX_JSON_LEN};
use call_assistant::model::{Appointment, Call, Contact, TransferredCall};
use call_assistant::webhook::event::{
    ApiVersion, Event, EventBody, EventData, EventType, NameSource, NewEvent, NewEventError,
    Origin, OriginSource, UsageWatch,
};
use proptest::prelude::*;

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
    let made = new_event().ping("æ \u{2028} \"quoted\"").unwrap();
    assert_eq!(EventBody::from_stored(made.as_bytes()).unwrap(), made);
    assert_eq!(
        format!("{made:?}"),
        format!(
            "EventBody {{ id: {:?}, event_type: {:?}, account_id: {:?}, created_at: {:?}, len: {} }}",
            made.id(),
            made.event_type(),
            made.account_id(),
            made.created_at(),
            made.as_bytes().len()
        )
    );
    let error = serde_json::from_str::<EventBody>("5").unwrap_err().to_string();
    assert!(error.contains("expected a string: an event's body"), "{error}");
    let json = serde_json::to_string(&made).unwrap();
    assert_eq!(serde_json::from_str::<EventBody>(&json).unwrap(), made);

    let spaced = made.as_str().replace(r#"","#, r#"" , "#);
    assert_eq!(EventBody::from_stored(spaced.as_bytes()).unwrap().as_str(), spaced);
    assert!(!format!("{made:?}").contains("quoted"));

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
    for (used, included, reached) in [
        (0, 0, false),
        (5, 0, false),
        (0, 1, false),
        (1, 1, true),
        (2, 3, false),
        (3, 3, true),
        (2, 4, false),
        (3, 4, true),
        (74, 100, false),
        (75, 100, true),
        (76, 100, true),
        (750, 1001, false),
        (751, 1001, true),
        (u64::MAX / 4 * 3, u64::MAX, false),
        (u64::MAX / 4 * 3 + 3, u64::MAX, true),
        (u64::MAX, u64::MAX, true),
        (u64::MAX, 1, true),
    ] {
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

fn instant() -> impl Strategy<Value = Timestamp> {
    let seconds = Timestamp::MIN.unix_seconds()..=Timestamp::MAX.unix_seconds();
    (seconds, 0..1_000_000_000_u32)
        .prop_map(|(seconds, nanos)| Timestamp::from_parts(seconds, nanos).unwrap())
}

fn any_object() -> impl Strategy<Value = JsonObject> {
    let leaf = prop_oneof![
        any::<String>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(serde_json::Value::from)
    });
    prop::collection::btree_map("[a-z]{1,6}|status|id", value, 0..5)
        .prop_map(|fields| object(&serde_json::to_string(&fields).unwrap()))
}

prop_compose! {
    fn any_call()(
        id in "[!-~]{1,32}",
        instants in prop::array::uniform4(instant()),
        texts in prop::array::uniform3(prop::option::of(any::<String>())),
        duration_seconds in any::<Option<i64>>(),
        appointments in prop::collection::vec("[!-~]{1,16}", 0..3),
    ) -> Call {
        let [started, answered, ended, created] = instants;
        let [phone_number, display_name, summary] = texts;
        let mut call = Call::new(CallId::parse(&id).unwrap(), started, created);
        call.caller.phone_number = phone_number;
        call.caller.display_name = display_name;
        call.answered_at = Some(answered);
        call.ended_at = Some(ended);
        call.duration_seconds = duration_seconds;
        call.summary = Some(summary.unwrap_or_default());
        call.appointment_ids =
            appointments.iter().map(|id| AppointmentId::parse(id).unwrap()).collect();
        call
    }
}

proptest! {
    /// Of every type, whatever is in it: what the service makes is what the customer reads.
    #[test]
    fn whatever_is_composed_is_read(
        call in any_call(),
        object in any_object(),
        text in any::<String>(),
        instant in instant(),
        source in any::<String>(),
    ) {
        let appointment = Appointment::from(object.clone());
        let contact = Contact::from(object.clone());
        use EventData as D;
        let cases = [
            D::CallEnded(call.clone()),
            D::CallTransferred(TransferredCall::new(call, &text, instant)),
            D::AppointmentCreated(appointment.clone()),
            D::AppointmentUpdated(appointment.clone()),
            D::AppointmentCancelled(appointment.cancelled()),
            D::ContactCreated(contact.clone()),
            D::ContactUpdated(contact),
            D::UsageThresholdReached(object),
            read(&new_event().ping(text).unwrap()).data,
        ];
        let types: Vec<_> = cases.iter().map(EventData::event_type).collect();
        prop_assert_eq!(types, EventType::KNOWN.iter().collect::<Vec<_>>(), "a type without random data");
        for data in cases {
            let made = composed(with_origin(Origin::new(OriginSource::from(source.as_str()))), &data);
            let event = read(&made);
            prop_assert_eq!(event.event_type(), made.event_type());
            prop_assert_eq!(&event.data, &data);
            prop_assert_eq!(event.origin.as_ref().unwrap().source.as_str(), &source);
            prop_assert_eq!(event.to_json(), made.as_bytes());
        }
    }
}
