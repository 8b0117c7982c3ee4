//! Stored forms: an array of the same fields, in their order, is refused, and so is a contradiction.
//!
//! serde's derive reads both. A row that lost its names would be read by the places of its values, and
//! a field that a later version adds in between would shift them.

use call_assistant::rest::client::{CallPages, CallSync, Pace};
use call_assistant::rest::server::StoredKey;
use call_assistant::webhook::event::UsageWatch;
use call_assistant::webhook::receiver::{EventKey, InboxEntry, ObjectVersion};
use call_assistant::webhook::sender::{
    Alert, Attempt, AttemptReport, DeliveryColumns, EndpointColumns, Excerpt, LogEntry,
    MAX_ATTEMPTS, Recovery, RecoveryFilter,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Every struct and every enum with fields that the crate stores, with all fields.
#[test]
fn no_stored_form_is_read_from_an_array_of_its_fields() {
    let walk = r#""paging":{"cursor":"c","anchor":"b","pages":2,"empty":0},"place":{"started_at":"2026-01-01T00:00:00Z","ids":["call_1"]},"frontier":{"started_at":"2026-01-02T00:00:00Z","ids":["call_2"]}"#;
    let filter = r#"{"from":"2026-01-01T00:00:00Z","until":"2026-01-02T00:00:00Z","statuses":["failed"],"types":["ping"],"generation":1,"failed_from":"2026-01-01T00:00:00Z"}"#;
    check::<CallPages>(&format!(
        r#"{{"list":"limit=5","walk":{{{walk}}},"done":false,"mode":"live","is_part":true,"tail":[],"unmet":[],"period":{{"from":"2026-01-01T00:00:00Z","until":"2026-01-02T00:00:00Z","complete_at":"2026-01-02T01:00:00Z"}}}}"#
    ));
    check::<CallSync>(&format!(
        r#"{{"lag":{{"secs":60,"nanos":0}},"mode":"live","account_id":"acct_1","since":null,"watermark":null,"recent":{{"call_1":"2026-01-01T00:00:00Z"}},"kept":null,"unreadable":{{"id:call_2":null}},"walk":{{{walk},"goal":null,"kept":null,"opening":{{"date":null,"first":true}}}}}}"#
    ));
    check::<Pace>(
        r#"{"gap":{"secs":0,"nanos":5},"free_at":"2026-01-01T00:00:01Z","latest":"2026-01-01T00:00:00Z"}"#,
    );
    check::<StoredKey>(&format!(
        r#"{{"id":"cred_1","account_id":"acct_1","digest":"{}","mode":"live","name":"n","hint":"h","scopes":["calls:read"],"created_at":"2026-01-01T00:00:00Z","last_used_at":null,"expires_at":null,"revoked_at":"2026-01-02T00:00:00Z"}}"#,
        "0a".repeat(32)
    ));
    check::<UsageWatch>(r#"{"reported":"2026-01-01T00:00:00Z"}"#);
    check::<EventKey>(r#"{"account":"acct_1","id":"evt_1"}"#);
    check::<ObjectVersion>(r#"{"object":"2026-01-01T00:00:00Z","event":"2026-01-02T00:00:00Z"}"#);
    check::<InboxEntry>(
        r#"{"taken":{"at":"2026-01-01T00:00:00Z","until":"2026-01-01T00:01:00Z"}}"#,
    );
    check::<InboxEntry>(r#"{"done":{"at":"2026-01-01T00:00:00Z"}}"#);
    check::<Alert>(r#"{"kind":"suspect"}"#);
    check::<Alert>(r#"{"kind":"failing","failures":5}"#);
    check::<Alert>(r#"{"kind":"disabled","reason":"gone"}"#);
    check::<Alert>(r#"{"kind":"still_disabled","reason":"gone","days":7}"#);
    check::<Alert>(r#"{"kind":"abandoned","reason":"event","deliveries":2}"#);
    check::<Attempt>(
        r#"{"of":[7,1],"event_created_at":"2026-01-01T00:00:00Z","number":1,"manual":false,"began_at":"2026-01-01T00:00:00Z","deadline":"2026-01-01T00:00:10Z","lease":1,"generation":0,"life":1}"#,
    );
    check::<AttemptReport>(
        r#"{"effect":"failure","late":false,"endpoint":1,"life":{"generation":0,"began":7}}"#,
    );
    check::<DeliveryColumns>(
        r#"{"event_created_at":"2026-01-01T00:00:00Z","status":"waiting","at":"2026-01-01T00:00:00Z","attempts":1,"manual":false,"generation":0,"version":1}"#,
    );
    check::<EndpointColumns>(
        r#"{"disabled":null,"since":"2026-01-01T00:00:00Z","failures":1,"first_failures":1,"first_failed_at":"2026-01-01T00:00:00Z","reminders":1,"generation":0,"version":1}"#,
    );
    check::<Excerpt>(r#"{"text":"down","cut":true}"#);
    check::<LogEntry>(
        r#"{"attempt":2,"manual":false,"began_at":"2026-01-01T00:00:00Z","took_ms":1250,"outcome":"503","late":false,"status":"waiting","next_at":null,"response":{"text":"down","cut":false},"reason":"not_tls","headers":{"text":"a: b","cut":false}}"#,
    );
    check::<RecoveryFilter>(filter);
    check::<Recovery<u64>>(&format!(
        r#"{{"missed":{filter},"by":"dashboard","started_at":"2026-01-01T00:00:00Z","generation":1,"counted":3,"redelivered":2,"left_out":1,"after":7,"status":"running","version":2}}"#
    ));
}

/// A value that no call has made, though each of its fields is in range.
#[test]
fn what_contradicts_itself_is_refused() {
    refused::<InboxEntry>(
        r#"{"taken":{"at":"2026-01-01T00:01:00Z","until":"2026-01-01T00:00:00Z"}}"#,
        "until is before at",
    );
    refused::<RecoveryFilter>(
        r#"{"from":"2026-01-02T00:00:00Z","until":"2026-01-01T00:00:00Z","statuses":[]}"#,
        "until is before from",
    );
    refused::<RecoveryFilter>(
        r#"{"from":"2026-01-01T00:00:00Z","until":"2026-01-02T00:00:00Z","statuses":[],"failed_from":"2026-01-01T00:00:00Z"}"#,
        "failed_from has no generation",
    );
    refused::<LogEntry>(
        &format!(
            r#"{{"attempt":{},"manual":false,"began_at":"2026-01-01T00:00:00Z","took_ms":1,"outcome":"503","late":false,"status":"failed","next_at":null,"response":null}}"#,
            MAX_ATTEMPTS + 1
        ),
        &format!("attempt number is not from 1 to {MAX_ATTEMPTS}"),
    );
}

#[track_caller]
fn refused<T: DeserializeOwned>(stored: &str, says: &str) {
    let error = serde_json::from_str::<T>(stored).err().map(|error| error.to_string());
    assert!(error.as_ref().is_some_and(|error| error.starts_with(says)), "{stored}: {error:?}");
}

#[track_caller]
fn check<T: DeserializeOwned + Serialize>(stored: &str) {
    let read: T = serde_json::from_str(stored).unwrap_or_else(|error| panic!("{stored}: {error}"));
    assert_eq!(serde_json::to_string(&read).unwrap(), stored, "all fields, in their order");
    for (at, _) in stored.match_indices('{') {
        let array = with_array(stored, at);
        serde_json::from_str::<serde_json::Value>(&array).unwrap();
        assert!(serde_json::from_str::<T>(&array).is_err(), "{array}");
    }
}

/// Writes the object that begins at `start` as an array of its values.
fn with_array(json: &str, start: usize) -> String {
    let (before, object) = json.split_at(start);
    let (mut array, mut depth) = (before.to_owned(), 0);
    let mut rest = object;
    while let Some(char) = rest.chars().next() {
        if depth == 1 && matches!(array.as_bytes().last(), Some(b'[' | b',')) && char == '"' {
            rest = rest.split_once("\":").unwrap().1;
            // The value, which may be a text.
            let text = rest.strip_prefix('"').map_or(0, |text| text.find('"').unwrap() + 2);
            array.push_str(&rest[..text]);
            rest = &rest[text..];
            continue;
        }
        rest = &rest[char.len_utf8()..];
        match char {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        match (char, depth) {
            ('{', 1) => array.push('['),
            ('}', 0) => return array + "]" + rest,
            _ => array.push(char),
        }
    }
    panic!("{json} has no object at {start}");
}
