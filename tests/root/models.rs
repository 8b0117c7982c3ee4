//! What travels, by the tables of section 2 of the specification.

use call_assistant::Timestamp;
use call_assistant::id::{AppointmentId, CallId};
use call_assistant::json::{JsonObject, ParseError, ParseErrorKind};
use call_assistant::model::{
    Account, Appointment, AppointmentStatus, Call, CallList, Contact, TransferredCall,
};
use serde_json::{Value, json};

use crate::at;

fn account() -> Value {
    json!({
        "id": "acct_1",
        "business_name": "Nordic Dental",
        "timezone": "Europe/Oslo",
        "livemode": true,
    })
}

fn call() -> Value {
    json!({
        "id": "call_8fK2",
        "caller": {
            "contact_id": "cont_9",
            "phone_number": "+4712345678",
            "display_name": "Kari Nordmann",
        },
        "started_at": "2026-03-01T09:30:00Z",
        "answered_at": "2026-03-01T09:30:04.123456789Z",
        "ended_at": "2026-03-01T09:34:10Z",
        "duration_seconds": 246,
        "summary": "Moved an appointment to Friday.",
        "appointment_ids": ["appt_2", "appt_1"],
        "created_at": "2026-03-01T09:34:12.25Z",
    })
}

fn bytes(json: &Value) -> Vec<u8> {
    serde_json::to_vec(json).unwrap()
}

/// Section 2's tables: the name of each field, and whether null may stand there. Anything absent
/// that may be null reads as null; anything else is missed by name.
#[track_caller]
fn check_fields<T: PartialEq + core::fmt::Debug>(
    full: &Value,
    table: &[(&str, bool)],
    read: fn(&[u8]) -> Result<T, ParseError>,
    write: fn(&T) -> Vec<u8>,
) {
    let object = full.as_object().unwrap();
    let mut names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(object.keys().collect::<Vec<_>>(), names, "exactly these fields");

    let value = read(&bytes(full)).unwrap();
    let written: Value = serde_json::from_slice(&write(&value)).unwrap();
    assert_eq!(&written, full, "written as it was read, nothing added");

    let mut more = full.clone();
    more["not_in_the_specification"] = json!({"name": [1, {}]});
    assert_eq!(read(&bytes(&more)).unwrap(), value);

    for &(name, nullable) in table {
        let mut null = full.clone();
        null[name] = Value::Null;
        let mut absent = full.clone();
        absent.as_object_mut().unwrap().remove(name);
        if nullable {
            let value = read(&bytes(&null)).unwrap();
            let written: Value = serde_json::from_slice(&write(&value)).unwrap();
            assert_eq!(written, null, "{name} is written as null");
            assert_eq!(read(&bytes(&absent)).unwrap(), value, "{name} absent is null");
            continue;
        }
        for (json, kind) in [(null, ParseErrorKind::Value), (absent, ParseErrorKind::Missing)] {
            let error = read(&bytes(&json)).unwrap_err();
            assert_eq!((error.kind(), error.field()), (kind, Some(name)));
        }
    }
}

/// RES-1
#[test]
fn an_account_has_these_four_fields() {
    check_fields(
        &account(),
        &[("id", false), ("business_name", true), ("timezone", false), ("livemode", false)],
        Account::from_json,
        Account::to_json,
    );
}

/// RES-3, RES-5, RES-6
#[test]
fn a_call_has_these_fields() {
    check_fields(
        &call(),
        &[
            ("id", false),
            ("caller", false),
            ("started_at", false),
            ("answered_at", true),
            ("ended_at", true),
            ("duration_seconds", true),
            ("summary", true),
            ("appointment_ids", false),
            ("created_at", false),
        ],
        Call::from_json,
        Call::to_json,
    );
}

/// RES-4; RES-6: nothing booked is an empty list.
#[test]
fn a_caller_is_an_object_whose_three_fields_may_be_null() {
    for name in ["contact_id", "phone_number", "display_name"] {
        let mut null = call();
        null["caller"][name] = Value::Null;
        let read = Call::from_json(&bytes(&null)).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), null, "{name}");

        let mut absent = call();
        absent["caller"].as_object_mut().unwrap().remove(name);
        assert_eq!(Call::from_json(&bytes(&absent)), Ok(read), "{name}");
    }
    let unknown = Call::new(CallId::parse("call_1").unwrap(), Timestamp::MIN, Timestamp::MAX);
    let written = serde_json::to_value(&unknown).unwrap();
    let nothing = json!({"contact_id": null, "phone_number": null, "display_name": null});
    assert_eq!(written["caller"], nothing);
    assert_eq!(written["appointment_ids"], json!([]));
}

/// RES-7: whatever a host keeps beside a call, reading it as a call and writing it drops it.
#[test]
fn nothing_but_the_public_fields_comes_out() {
    let mut row = call();
    for private in ["llm_usage", "inbox_state", "transcript", "audio_url", "refused"] {
        row[private] = json!("private");
        row["caller"][private] = json!("private");
    }
    let written = Call::from_json(&bytes(&row)).unwrap().to_json();
    assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), call());
}

/// RES-9, D-21: a reader takes every form, a writer knows one.
#[test]
fn a_list_is_read_in_every_form_and_written_in_one() {
    let read = |json: &str| CallList::from_json(json.as_bytes()).unwrap();
    let cases = [
        (r#"{"data":[]}"#, None, None, false),
        (r#"{"data":[],"next_cursor":null}"#, None, None, false),
        (r#"{"data":[],"next_cursor":"c"}"#, Some("c"), None, true),
        (r#"{"data":[],"has_more":null}"#, None, None, false),
        (r#"{"data":[],"has_more":false}"#, None, Some(false), false),
        (r#"{"has_more":true,"next_cursor":"c","data":[]}"#, Some("c"), Some(true), true),
        // Contradictions are for whoever walks the pages to judge (D-24): nothing is hidden here.
        (r#"{"data":[],"has_more":true}"#, None, Some(true), true),
        (r#"{"data":[],"next_cursor":"c","has_more":false}"#, Some("c"), Some(false), false),
    ];
    for (json, next_cursor, has_more, written) in cases {
        let list = read(json);
        assert_eq!(list.next_cursor.as_deref(), next_cursor, "{json}");
        assert_eq!(list.has_more, has_more, "{json}");
        let value: Value = serde_json::from_slice(&list.to_json()).unwrap();
        assert_eq!(value, json!({"data": [], "next_cursor": next_cursor, "has_more": written}));
    }
    let page = CallList::new(vec![Call::from_json(&bytes(&call())).unwrap()], Some("c".into()));
    assert_eq!(page.has_more, Some(true));
    assert_eq!(CallList::from_json(&page.to_json()), Ok(page));
    assert_eq!(CallList::new(Vec::new(), None).has_more, Some(false));

    let error = CallList::from_json(br#"{"next_cursor":null}"#).unwrap_err();
    assert_eq!((error.kind(), error.field()), (ParseErrorKind::Missing, Some("data")));
}

/// RES-10: the types of the two fields are not given, so any are kept.
#[test]
fn a_transferred_call_keeps_its_two_facts_whatever_they_are() {
    let mut plain = call();
    plain["target_label"] = json!("Front desk");
    plain["transferred_at"] = json!("2026-03-01T09:33:00Z");
    let read = TransferredCall::from_json(&bytes(&plain)).unwrap();
    assert_eq!(read.target_label().as_deref(), Some("Front desk"));
    assert_eq!(read.transferred_at(), Some(at("2026-03-01T09:33:00Z")));
    assert_eq!(serde_json::from_slice::<Value>(&read.to_json()).unwrap(), plain);
    let made = TransferredCall::new(read.call.clone(), "Front desk", at("2026-03-01T09:33:00Z"));
    assert_eq!(made, read);

    for odd in [r#"{"name":"desk","n":1.0e400}"#, "7", "null", "[]", "true", r#""yesterday""#] {
        let open = call().to_string().strip_suffix('}').unwrap().to_owned();
        let text = format!(r#"{open},"target_label":{odd},"transferred_at":{odd}}}"#);
        let read = TransferredCall::from_json(text.as_bytes()).unwrap();
        assert_eq!(read.target_label_json().unwrap().get(), odd);
        assert_eq!(read.transferred_at_json().unwrap().get(), odd);
        assert_eq!(read.transferred_at(), None, "{odd}");
        let written = read.to_json();
        assert_eq!(TransferredCall::from_json(&written), Ok(read));
        let written = String::from_utf8(written).unwrap();
        for fact in ["target_label", "transferred_at"] {
            assert!(written.contains(&format!("\"{fact}\":{odd}")), "{written}");
        }
    }

    // Without them it is still a call, and they are not made up.
    let read = TransferredCall::from_json(&bytes(&call())).unwrap();
    assert_eq!((read.target_label(), read.transferred_at()), (None, None));
    assert_eq!(serde_json::from_slice::<Value>(&read.to_json()).unwrap(), call());

    let mut broken = call();
    broken["started_at"] = json!("yesterday");
    let error = TransferredCall::from_json(&bytes(&broken)).unwrap_err();
    assert_eq!(error.kind(), ParseErrorKind::Value);
}

/// RES-11: nothing that arrives in an appointment or a contact is lost.
#[test]
fn open_objects_are_kept_to_the_letter() {
    let text = r#"{"z":1.0e400, "a":[{"b":null}],"dup":1,"dup":2,"\u0069d":"appt_7","half":"\ud800",
        "big":123456789012345678901234567890,"status":"confirmed"}"#;
    let appointment = Appointment::from_json(text.as_bytes()).unwrap();
    assert_eq!(appointment.to_json(), text.as_bytes());
    assert_eq!(appointment.id(), Some(AppointmentId::parse("appt_7").unwrap()));
    assert_eq!(appointment.status(), Some(AppointmentStatus::from("confirmed")));
    assert_eq!(appointment.object().get("dup").unwrap().get(), "2", "the last one counts");
    assert_eq!(appointment.object().get("half").unwrap().get(), r#""\ud800""#);
    assert_eq!(appointment.object().get_str("half"), None);

    let contact = Contact::from_json(text.as_bytes()).unwrap();
    assert_eq!(contact.to_json(), text.as_bytes());
    assert_eq!(contact.object(), appointment.object());

    for wrong in ["[]", "5", "\"{}\"", "null", "true", "[{\"status\":\"x\"}]"] {
        let error = Appointment::from_json(wrong.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ParseErrorKind::Value, "{wrong}");
        assert_eq!(Contact::from_json(wrong.as_bytes()), Err(error), "{wrong}");
    }
}

/// RES-12: the timezone is handed on to the letter, and a time without an offset, which only it
/// could place, is refused wherever an instant stands.
#[test]
fn local_times_are_left_to_the_timezone() {
    for name in ["America/Argentina/ComodRivadavia", "Etc/GMT+12", "UTC", "Mars/Sea"] {
        let mut account = account();
        account["timezone"] = json!(name);
        let read = Account::from_json(&bytes(&account)).unwrap();
        assert_eq!(read.timezone, name);
        assert_eq!(serde_json::from_slice::<Value>(&read.to_json()).unwrap(), account);
    }
    for field in ["started_at", "answered_at", "ended_at", "created_at"] {
        for local in ["2026-03-29T02:30:00", "2026-03-29T02:30:00.5", "02:30"] {
            let mut call = call();
            call[field] = json!(local);
            let error = Call::from_json(&bytes(&call)).unwrap_err();
            assert_eq!((error.kind(), error.field()), (ParseErrorKind::Value, Some(field)));
        }
    }
}

#[test]
fn cancelling_an_appointment_changes_its_status_and_nothing_else() {
    let cases = [
        (r#"{"status":"open","n":1.50}"#, r#"{"status":"cancelled","n":1.50}"#),
        (r#"{"n":1e2}"#, r#"{"n":1e2,"status":"cancelled"}"#),
        (r#"{}"#, r#"{"status":"cancelled"}"#),
        (r#"{"status":1,"n":[ 1 ],"status":2}"#, r#"{"status":"cancelled","n":[ 1 ]}"#),
        (r#"{"st\u0061tus":null}"#, r#"{"status":"cancelled"}"#),
        (r#"{"status":"cancelled"}"#, r#"{"status":"cancelled"}"#),
    ];
    for (before, after) in cases {
        let appointment = Appointment::from_json(before.as_bytes()).unwrap().cancelled();
        assert_eq!(appointment.object().as_str(), after, "{before}");
        assert_eq!(appointment.status(), Some(AppointmentStatus::Cancelled), "{before}");
    }
    assert_eq!(JsonObject::parse("{}").unwrap().get("status").map(|_| ()), None);
}

/// Every beginning of every golden body is refused, at a place within it.
#[test]
fn every_truncation_is_refused() {
    fn check<T: core::fmt::Debug>(full: &Value, read: fn(&[u8]) -> Result<T, ParseError>) {
        let full = bytes(full);
        for end in 0..full.len() {
            let error = read(&full[..end]).unwrap_err();
            assert_eq!(error.kind(), ParseErrorKind::Truncated, "at {end}: {error}");
            assert!(error.line() == 1 && error.column() <= end, "at {end}: {error}");
        }
        read(&full).unwrap();
    }
    check(&account(), Account::from_json);
    check(&call(), Call::from_json);
    check(&call(), TransferredCall::from_json);
    check(&call(), Appointment::from_json);
    check(&call(), Contact::from_json);
    check(&json!({"data": [call(), call()], "next_cursor": null}), CallList::from_json);
}

/// RES-10: two transfers are the same if all that is known of them is.
#[test]
fn a_transfer_is_its_call_and_its_two_facts() {
    let (one, two) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:00:01Z"));
    let call = |id: &str| Call::new(CallId::parse(id).unwrap(), one, one);
    let transfer = TransferredCall::new(call("call_1"), "desk", two);
    assert_eq!(transfer, TransferredCall::new(call("call_1"), "desk", two));
    assert_ne!(transfer, TransferredCall::new(call("call_2"), "desk", two));
    assert_ne!(transfer, TransferredCall::new(call("call_1"), "bar", two));
    assert_ne!(transfer, TransferredCall::new(call("call_1"), "desk", one));
    let shown = format!("{transfer:?}");
    assert!(shown.contains("desk") && shown.contains("2026-01-01T00:00:01Z"), "{shown}");
}
