//! Events read: the envelope, each type, and what does not fit.

use call_assistant::json::ParseErrorKind;
use call_assistant::webhook::event::{
    ApiVersion, Event, EventBody, EventData, EventError, EventType, Origin, OriginSource,
};
use call_assistant::webhook::{DeliveryHeader, testing};
use call_assistant::{Product, TextReason, Timestamp};

use serde_json::json;
use support::{corpus, permute};

use super::{NOW, at, signed, verified, verifier};

pub(crate) const CALL: &str = r#"{"id":"call_1","caller":{"contact_id":"cont_1","phone_number":"+4712345678","display_name":"Kari"},"started_at":"2026-01-01T09:30:00Z","answered_at":"2026-01-01T09:30:02.5Z","ended_at":"2026-01-01T09:34:00Z","duration_seconds":240,"summary":"Moved to Friday.","appointment_ids":["appt_1","appt_2"],"created_at":"2026-01-01T09:34:10Z"}"#;

/// Section 6, the table of event types: each type, and data as the service writes it.
pub(crate) fn golden() -> Vec<(EventType, String)> {
    let sample = |known: &EventType| (known.clone(), known.sample().unwrap().to_owned());
    EventType::KNOWN.iter().map(sample).collect()
}

/// The envelope's fields as the service writes them, in the specification's order.
fn fields(event_type: &str, data: &str) -> [String; 7] {
    [
        r#""id":"evt_1""#.to_owned(),
        format!(r#""type":"{event_type}""#),
        r#""created_at":"2026-01-01T09:34:11+00:00""#.to_owned(),
        r#""api_version":"2026-01-15""#.to_owned(),
        r#""account_id":"acct_1""#.to_owned(),
        r#""origin":{"source":"voice","credential_id":null,"idempotency_key":null}"#.to_owned(),
        format!(r#""data":{data}"#),
    ]
}

fn joined(fields: &[String]) -> String {
    format!("{{{}}}", fields.join(","))
}

pub(crate) fn body(event_type: &str, data: &str) -> String {
    joined(&fields(event_type, data))
}

fn read(body: &str) -> Event {
    Event::from_bytes_verified_earlier(body.as_bytes()).unwrap()
}

#[track_caller]
fn refused(body: &str) -> (ParseErrorKind, Option<String>) {
    let error = Event::from_bytes_verified_earlier(body.as_bytes()).unwrap_err();
    assert_eq!(EventBody::from_stored(body.as_bytes()), Err(error.clone()));
    (error.kind(), error.field().map(str::to_owned))
}

/// EVT-1, EVT-3, EVT-4, D-63, RES-11: each type is read, and written as it came, to the letter.
#[test]
fn each_type_is_read_and_written() {
    let beside = |(known, data): (EventType, String)| {
        let more = r#","previous":{"minutes": 1.50},"tags":[],"previous":null}"#;
        (known, (data.strip_suffix('}').unwrap().to_owned() + more).replace("{,", "{"))
    };
    let more = [
        (EventType::AppointmentUpdated, r#"{"object":{"id":"appt_1","room":3}}"#),
        (EventType::ContactUpdated, r#"{"object":{"id":"cont_1","tags":[1.0,{"a":null}]}}"#),
        (EventType::UsageThresholdReached, r#"{"minutes_used":75.00,"minutes_included":1e2}"#),
    ];
    let more = more.map(|(known, data)| (known, data.to_owned()));
    for (event_type, data) in
        golden().into_iter().chain(golden().into_iter().map(beside)).chain(more)
    {
        let text = body(event_type.as_str(), &data);
        let event = read(&text);
        assert_eq!(event.event_type(), &event_type, "{event_type}");
        assert!(!matches!(event.data, EventData::Unreadable { .. }), "{event_type}");
        assert_eq!(event.id.as_str(), "evt_1");
        let created_at = Timestamp::parse("2026-01-01T09:34:11Z").unwrap();
        assert_eq!(event.created_at, created_at, "{event_type}");
        assert_eq!(event.api_version, ApiVersion::parse("2026-01-15").ok(), "{event_type}");
        assert_eq!(event.account_id.as_str(), "acct_1");
        assert_eq!(event.origin.as_ref().unwrap().source, OriginSource::Voice, "{event_type}");
        assert_eq!(String::from_utf8(event.to_json()).unwrap(), text, "{event_type}");
        if let EventData::CallTransferred(call) = event.data {
            // RES-10
            assert_eq!(call.target_label().as_deref(), Some("Front desk"));
            assert_eq!(call.transferred_at(), Timestamp::parse("2026-03-01T09:32:00Z").ok());
        }
    }
}

/// EVT-1 to EVT-3, D-47, D-63: what an independent program reads of each body.
#[test]
fn each_body_of_the_corpus_has_its_reading() {
    for case in corpus(include_str!("../../vectors/events.json")) {
        let (name, expected) = (&case["name"], &case["reads"]);
        let body = case["body"].as_str().unwrap();
        if expected.is_null() {
            let (_, field) = refused(body);
            let is_told = case["field"].is_null() || case["field"] == json!(field);
            assert!(is_told, "{name}: {field:?}");
            continue;
        }
        let event = read(body);
        let source = event.origin.as_ref().map(|origin| origin.source.to_string());
        let seen = json!({
            "id": event.id.as_str(),
            "type": event.event_type().as_str(),
            "created_at": event.created_at.unix_seconds(),
            "account_id": event.account_id.as_str(),
            "source": source,
            "is_known": !matches!(event.data, EventData::Unknown(_)),
            "fits": !matches!(event.data, EventData::Unreadable { .. }),
        });
        assert_eq!(seen, *expected, "{name}");
    }
}

/// EVT-1: a JSON object has no order, so the type may come after the data.
#[test]
fn the_order_of_the_fields_means_nothing() {
    let mut cases = golden();
    cases.push((EventType::from("call.paused"), r#"{"object":[1]}"#.to_owned()));
    for (event_type, data) in cases {
        let mut fields = fields(event_type.as_str(), &data);
        let expected = read(&joined(&fields));
        permute(&mut fields, 0, &mut |fields| assert_eq!(read(&joined(fields)), expected));
    }
}

/// Whatever ends a body early, it is no event.
#[test]
fn every_truncation_is_refused() {
    let more = |event_type: &str, data: &str| (EventType::from(event_type), data.to_owned());
    let unknown = [
        more("ping", r#"{"more":[true],"message":"m"}"#),
        more("call.paused", r#"{"object":[true]}"#),
        more("call.paused", r#"{"object":{}},"more":{"a":[true]}"#),
    ];
    for (event_type, data) in golden().into_iter().chain(unknown) {
        let text = body(event_type.as_str(), &data);
        for end in 0..text.len() {
            let text = &text[..end];
            assert_eq!(refused(text).0, ParseErrorKind::Truncated, "{text}");
        }
    }
}

/// EVT-1: what the envelope must have, and in which form. The type makes no difference, and
/// neither does whether the data would fit.
#[test]
fn a_malformed_envelope_is_refused_with_its_field() {
    use ParseErrorKind::{Duplicate, Missing, Value};
    let without = |name: &str| (format!(r#""{name}":"#), String::new(), Missing, name.to_owned());
    let with = |name: &str, value: &str, kind| {
        (format!(r#""{name}":"#), format!(r#""{name}":{value}"#), kind, name.to_owned())
    };
    let mut cases: Vec<_> = ["id", "type", "created_at", "account_id", "data"].map(without).into();
    cases.extend([
        with("id", r#""call_1""#, Value),
        with("id", r#""evt_ ""#, Value),
        with("id", "null", Value),
        with("type", "7", Value),
        with("created_at", r#""2026-01-01T09:34:11""#, Value),
        with("created_at", r#""2026-01-01""#, Value),
        with("created_at", "1767260051", Value),
        with("account_id", r#""""#, Value),
        with("id", r#""evt_1","id":"evt_1""#, Duplicate),
        with("type", r#""ping","type":"ping""#, Duplicate),
    ]);
    for (prefix, replacement, kind, field) in cases {
        for (event_type, data) in [("ping", r#"{"message":"m"}"#), ("ping", "{}"), ("other", "0")] {
            let mut fields = fields(event_type, data).to_vec();
            let at = fields.iter().position(|field| field.starts_with(&prefix)).unwrap();
            fields[at].clone_from(&replacement);
            fields.retain(|field| !field.is_empty());
            for _ in 0..fields.len() {
                let text = joined(&fields);
                assert_eq!(refused(&text), (kind, Some(field.clone())), "{text}");
                fields.rotate_left(1);
            }
        }
    }
    // The fields' values alone are none, though serde could read an event from them.
    let array = r#"["evt_1","ping","2026-01-01T00:00:00Z","2026-01-15","acct_1",null,{}]"#;
    assert_eq!(refused(array).0, Value);
    let error = Event::from_bytes_verified_earlier(b"{\"id\":\"evt_\xff\"}").unwrap_err();
    assert_eq!(error.kind(), ParseErrorKind::NotUtf8);
}

/// EVT-1: two `data` contradict each other, wherever the type stands that says how to read them.
#[test]
fn data_given_twice_is_refused_wherever_the_type_stands() {
    for (event_type, data) in [("ping", r#"{"message":"m"}"#), ("ping", "{}"), ("other", "0")] {
        let mut once = fields(event_type, data).to_vec();
        let again = once.pop().unwrap();
        for first in 0..=once.len() {
            for second in first + 1..=once.len() + 1 {
                let mut twice = once.clone();
                twice.insert(first, again.clone());
                twice.insert(second, again.clone());
                let text = joined(&twice);
                let expected = (ParseErrorKind::Duplicate, Some("data".to_owned()));
                assert_eq!(refused(&text), expected, "{text}");
            }
        }
    }
}

/// EVT-2: origin is an object or null; older redeliveries may not have it at all.
#[test]
fn origin_may_be_null_or_of_any_source() {
    let with = |origin: &str| {
        let mut fields = fields("ping", r#"{"message":"m"}"#).to_vec();
        fields[5] = origin.to_owned();
        fields.retain(|field| !field.is_empty());
        read(&joined(&fields))
    };
    assert_eq!(with(r#""origin":null"#).origin, None);
    assert_eq!(with("").origin, None);
    assert!(String::from_utf8(with("").to_json()).unwrap().contains(r#""origin":null,"#));

    let dashboard = with(r#""origin":{"source":"dashboard"}"#).origin.unwrap();
    assert_eq!(dashboard, Origin::new(OriginSource::from("dashboard")));

    let key = r#""origin":{"source":"api","credential_id":"key_1","idempotency_key":"k 1"}"#;
    let event = with(key);
    assert!(String::from_utf8(event.to_json()).unwrap().contains(key));
    let origin = event.origin.unwrap();
    assert_eq!(origin.credential_id.unwrap().as_str(), "key_1");
    assert_eq!(origin.idempotency_key.as_deref(), Some("k 1"));
}

/// VER-1: a version is a day of the calendar, and orders as one.
#[test]
fn api_versions_are_dates() {
    for good in ["2026-01-15", "2024-02-29", "0000-01-01", "9999-12-31"] {
        let version = ApiVersion::parse(good).unwrap();
        assert_eq!(version.as_str(), good, "{good}");
        assert_eq!(good.parse(), Ok(version), "{good}");
        assert_eq!(format!("{version} {version:?}"), format!("{good} ApiVersion(\"{good}\")"));
    }
    let bad = " 2026-1-15 2026-01-15Z 2026/01/15 +026-01-15 ２026-01-1 2026-00-15 2026-13-15 \
        2026-01-00 2026-01-32 2025-02-29";
    for bad in bad.split(' ') {
        let error = ApiVersion::parse(bad).unwrap_err();
        assert_eq!(error.reason(), TextReason::Form, "{bad}");
        assert_eq!(error.to_string(), "API version is not a date like 2026-01-15", "{bad}");
        assert_eq!(bad.parse::<ApiVersion>(), Err(error), "{bad}");
    }
    let error = serde_json::from_str::<ApiVersion>("5").unwrap_err().to_string();
    assert!(error.contains("expected a string: a date like 2026-01-15"), "{error}");
}

/// D-47, EVT-3: a type that is not known is an event, whatever its data is.
#[test]
fn an_unknown_type_is_kept_whole() {
    for data in [r#"{"object": {"id": 1.0} , "x":[]}"#, "null", "[1e400]", "\"\\ud800\"", "{}"] {
        let text = body("call.paused", data);
        let event = read(&text);
        let EventData::Unknown(unknown) = &event.data else { panic!("{event:?}") };
        assert_eq!(event.event_type().as_str(), "call.paused");
        assert!(matches!(event.event_type(), EventType::Other(_)), "{data}");
        assert_eq!(unknown.json().get(), data, "{data}");
        assert_eq!(event.to_json(), text.as_bytes(), "{data}");
        assert!(format!("{unknown:?}").contains(&format!("data: {data},")), "{unknown:?}");
    }
    // The same text is the same data, and no other.
    let data = |text| match read(&body("call.paused", text)).data {
        EventData::Unknown(unknown) => unknown,
        other => panic!("{other:?}"),
    };
    assert_eq!(data("[1]"), data("[1]"));
    assert_ne!(data("[1]"), data("[1.0]"));
}

/// D-47: a known type whose data does not fit is an event too, with the reason: where in the body,
/// without what stood there.
#[test]
fn a_known_type_that_drifted_is_kept_whole() {
    use ParseErrorKind::{Duplicate, Missing, Syntax, Value};
    let call = |from: &str, to: &str| format!(r#"{{"object":{}}}"#, CALL.replace(from, to));
    let cases = [
        (
            "call.ended",
            call(r#""+4712345678""#, "4712345678"),
            Value,
            "data.object.caller.phone_number",
        ),
        ("call.ended", r#"{"object":{"id":"call_1"}}"#.into(), Missing, "data.object.caller"),
        ("call.ended", format!(r#"{{"object":{CALL},"object":{CALL}}}"#), Duplicate, "data.object"),
        ("call.transferred", r#"{"object":{"id":7}}"#.into(), Value, "data.object.id"),
        ("call.ended", r#"{"call":{}}"#.into(), Missing, "data.object"),
        ("appointment.created", r#"{"object":"appt_77"}"#.into(), Value, "data.object"),
        ("contact.updated", r#"{"object":null}"#.into(), Value, "data.object"),
        ("ping", r#"{"message":4712345678}"#.into(), Value, "data.message"),
        ("ping", "null".into(), Value, "data"),
        // Where all of `data` is one kept object, anything else has drifted.
        ("usage.threshold_reached", "[75, 100]".into(), Value, "data"),
        // JSON that no Rust value can hold.
        ("call.ended", call("Moved to Friday.", r"\ud800"), Syntax, "data.object.summary"),
        ("call.ended", call(":240,", ":1e400,"), Syntax, "data.object.duration_seconds"),
        ("call.ended", call(":240,", ":240.5,"), Value, "data.object.duration_seconds"),
        (
            "call.ended",
            call(":240,", ":18446744073709551616,"),
            Value,
            "data.object.duration_seconds",
        ),
        // Nor is an array a caller, though serde could read one from it.
        (
            "call.ended",
            call(r#"{"contact_id":"cont_1","#, r#"["cont_1",{"#).replace("},", "}],"),
            Value,
            "data.object.caller",
        ),
    ];
    for (event_type, data, kind, field) in cases {
        let mut fields = fields(event_type, &data);
        for _ in 0..7 {
            let text = joined(&fields);
            let event = read(&text);
            let EventData::Unreadable { data: drifted, error, .. } = &event.data else {
                panic!("{event:?}")
            };
            assert_eq!(event.event_type().as_str(), event_type, "{text}");
            assert!(EventType::KNOWN.contains(event.event_type()), "{text}");
            assert_eq!(drifted.json().get(), data, "{text}");
            assert_eq!((error.kind(), error.field()), (kind, Some(field)), "{text}");
            // The place is one in the body, after the data's beginning.
            let start = text.find(r#""data":"#).unwrap();
            assert!(error.column() > start, "{error}");
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("4712345678") && !shown.contains("appt_77"), "{shown}");
            let written = read(&String::from_utf8(event.to_json()).unwrap());
            let EventData::Unreadable { data: again, .. } = written.data else {
                panic!("drifted no more")
            };
            assert_eq!(again.json().get(), data, "{text}");
            fields.rotate_left(1);
        }
    }
}

/// D-47: an envelope whose id, type, account and time can be read is an event, whatever is odd about
/// the rest. It is kept whole, with the reason.
#[test]
fn an_odd_field_of_the_envelope_costs_no_event() {
    use ParseErrorKind::{Duplicate, Missing, Value};
    for (name, odd, kind) in [
        ("api_version", r#""api_version":"2026-02-30""#, Value),
        ("api_version", r#""api_version":"v1""#, Value),
        ("api_version", r#""api_version":null"#, Value),
        ("api_version", "", Missing),
        ("origin", r#""origin":"voice""#, Value),
        ("origin", r#""origin":["voice",null,null]"#, Value),
        ("origin", r#""origin":{"source":"voice","credential_id":7}"#, Value),
        ("origin", r#""origin":{"source":"voice","\ud800":1}"#, ParseErrorKind::Syntax),
        ("origin", r#""origin":{}"#, Missing),
        ("origin", r#""origin":null,"origin":null"#, Duplicate),
    ] {
        for (event_type, data) in [("ping", r#"{"message":"m"}"#), ("ping", "{}"), ("other", "0")] {
            let mut fields = fields(event_type, data).to_vec();
            let at = fields.iter().position(|field| field.starts_with(&format!("\"{name}")));
            fields[at.unwrap()] = odd.to_owned();
            fields.retain(|field| !field.is_empty());
            for _ in 0..fields.len() {
                let text = joined(&fields);
                let event = read(&text);
                let ids = (event.id.as_str(), event.account_id.as_str());
                assert_eq!(ids, ("evt_1", "acct_1"), "{text}");
                assert_eq!(event.event_type().as_str(), event_type, "{text}");
                let EventData::Unreadable { data: kept, error, .. } = &event.data else {
                    panic!("{text}: {event:?}")
                };
                assert_eq!(kept.json().get(), data, "{text}");
                assert_eq!(event.to_json(), text.as_bytes(), "{text}");
                // Of several faults the first is named.
                if data != "{}" {
                    let named = error.field().unwrap_or_default();
                    assert!(named.starts_with(name), "{text}: {error:?}");
                    assert_eq!(error.kind(), kind, "{text}");
                }
                assert_eq!(EventBody::from_stored(&text).unwrap().as_str(), text, "{text}");
                fields.rotate_left(1);
            }
        }
    }
}

/// D-47: a new field may have any name that JSON allows, also one that no text can hold.
#[test]
fn an_unknown_field_of_any_name_is_ignored() {
    let plain = read(&body("ping", r#"{"message":"m"}"#));
    for name in [r"\ud800", r"\ud83d\ud83d", r"\u0000", "", r"\\", r#"\""#, "ı"] {
        for data in [r#"{"message":"m"}"#, "7"] {
            let mut fields = fields("ping", data).to_vec();
            fields.push(format!(r#""{name}":[1e400]"#));
            for _ in 0..fields.len() {
                let text = joined(&fields);
                let event = read(&text);
                assert_eq!(event.id, plain.id, "{text}");
                assert_eq!(event.origin, plain.origin, "{text}");
                assert_eq!(event == plain, data != "7", "{text}");
                fields.rotate_left(1);
            }
        }
    }
    // A known name with an escape in it is the known name.
    let escaped = body("ping", r#"{"message":"m"}"#).replace(r#""data""#, r#""d\u0061ta""#);
    assert_eq!(read(&escaped), plain);
}

/// Nothing recurses over what is kept, so nesting has no limit but the body's length.
#[test]
fn nesting_does_no_harm() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let object = format!(r#"{{"object":{{"id":"appt_1","deep":{deep}}},"deep":{deep}}}"#);
    for (event_type, data) in [
        ("call.paused", deep.clone()),
        ("appointment.updated", object.clone()),
        ("usage.threshold_reached", object),
        ("ping", deep.clone()),
        ("call.ended", format!(r#"{{"object":{{"deep":{deep}}}}}"#)),
    ] {
        let text = body(event_type, &data);
        assert_eq!(read(&text).to_json(), text.as_bytes(), "{event_type}");
    }
    let beside = format!(r#"{{"deep":{deep},"#) + &body("ping", r#"{"message":"m"}"#)[1..];
    assert_eq!(read(&beside), read(&body("ping", r#"{"message":"m"}"#)));
}

/// SIG-5: the event comes out of what was verified.
#[test]
fn a_verified_body_gives_its_event() {
    for (event_type, data) in golden() {
        let text = body(event_type.as_str(), &data);
        let request = signed(event_type.as_str(), "evt_1", text.as_bytes());
        let verified = verified(&request);
        assert_eq!(verified.event(), Ok(read(&text)), "{event_type}");
    }
}

/// SIG-5: what is in a body makes no difference before it is proven: nobody has read it.
#[test]
fn a_body_that_is_not_proven_is_not_read() {
    let deep = "[".repeat(100_000);
    let event = body("ping", r#"{"message":"m"}"#);
    let no_id = event.replace("evt_1", "call_1");
    let bodies: [&[u8]; 7] =
        [b"", b"\xff\xfe", b"{", b"null", deep.as_bytes(), no_id.as_bytes(), event.as_bytes()];
    for body in bodies {
        let genuine = signed("ping", "evt_1", body);
        let other = call_assistant::webhook::Signer::new(super::secret("whsec_another"));
        let forged = testing::signed_request(&other, "ping", "evt_1", body, at(NOW)).unwrap();
        let verifier = verifier();
        let refused = verifier.verify(forged.headers(), body, at(NOW)).unwrap_err();
        assert_eq!(refused, call_assistant::webhook::VerifyError::Mismatch, "{body:?}");
        let verified = verifier.verify(genuine.headers(), body, at(NOW)).unwrap();
        assert_eq!(verified.bytes(), body, "{body:?}");
        assert_eq!(verified.event().is_ok(), body == event.as_bytes(), "{body:?}");
    }
}

/// D-45: the headers are not signed. They may be missing, but not contradict.
#[test]
fn a_header_that_contradicts_the_body_is_its_own_error() {
    let contradiction = |header| Err(format!("{header} header contradicts the body"));
    let text = body("ping", r#"{"message":"m"}"#);
    for (event, delivery, expected) in [
        ("ping", "evt_1", Ok(())),
        ("call.ended", "evt_1", contradiction(DeliveryHeader::Event)),
        ("PING", "evt_1", contradiction(DeliveryHeader::Event)),
        ("ping", "evt_2", contradiction(DeliveryHeader::Delivery)),
        ("ping2", "evt_2", contradiction(DeliveryHeader::Event)),
    ] {
        let request = signed(event, delivery, text.as_bytes());
        let verified = verified(&request);
        let seen = verified.event().map(drop);
        let of_its_own = matches!(seen, Ok(()) | Err(EventError::Contradiction { .. }));
        assert!(of_its_own, "{event}, {delivery}");
        assert_eq!(seen.map_err(|error| error.to_string()), expected);
        // The body stays proven, for whoever wants to go on.
        assert_eq!(Event::from_bytes_verified_earlier(verified.bytes()), Ok(read(&text)));
    }

    let mut request = signed("x", "y", text.as_bytes());
    request.headers_mut().remove("x-service-event");
    request.headers_mut().remove("x-service-delivery");
    let verified = verified(&request);
    assert_eq!(verified.event().map(drop), Ok(()));
}

/// D-75: repeated, an unsigned header is refused when the event is read, and not before.
#[test]
fn a_repeated_claim_is_refused_with_the_event() {
    let text = body("ping", r#"{"message":"m"}"#);
    for header in [DeliveryHeader::Event, DeliveryHeader::Delivery] {
        let mut request = signed("ping", "evt_1", text.as_bytes());
        let name = header.name(&Product::default()).clone();
        let value = request.headers()[&name].clone();
        request.headers_mut().append(name, value);
        let verified = verified(&request);
        let error = verified.event().unwrap_err();
        assert!(matches!(error, EventError::Repeated { header: told, .. } if told == header));
        assert_eq!(error.to_string(), format!("{header} header is present more than once"));
        // The body stays proven.
        let event = Event::from_bytes_verified_earlier(verified.bytes());
        assert_eq!(event, Ok(read(&text)), "{header}");
    }
}
