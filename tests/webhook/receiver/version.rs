//! EVT-8: which of two states of an object is newer.

use call_assistant::json::JsonObject;
use call_assistant::webhook::receiver::ObjectVersion;

use crate::dice::at;
use support::permute;

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
        let mut stored: Option<(ObjectVersion, &str)> = None;
        for index in order {
            let (own, event, state) = updates[*index];
            let own = own.map_or(String::from("null"), |own| format!(r#""{}""#, at(own)));
            let object = JsonObject::parse(&format!(r#"{{"changed_at":{own}}}"#)).unwrap();
            let version =
                ObjectVersion::from_fields(&object, &["updated_at", "changed_at"], at(event));
            if version.replaces(stored.map(|(version, _)| version)) {
                stored = Some((version, state));
            }
        }
        assert_eq!(stored.unwrap().1, "cancelled", "{order:?}");
        orders += 1;
    });
    assert_eq!(orders, 24);
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
        let version =
            ObjectVersion::from_fields(&JsonObject::parse(object).unwrap(), &fields, at(9_000));
        let stored = format!(r#"{{"object":"{}","event":"{}"}}"#, at(expected), at(9_000));
        assert_eq!(serde_json::to_string(&version).unwrap(), stored, "{object}");
    }
    // Equally recent: the one that arrives later.
    let unnamed = JsonObject::parse("{}").unwrap();
    let [version, later] = [0, 1].map(|now| ObjectVersion::from_fields(&unnamed, &[], at(now)));
    assert!(version.replaces(Some(version)));
    assert!(!version.replaces(Some(later)));
    assert!(version.replaces(None));
}
