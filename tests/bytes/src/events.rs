//! Bodies of events.

use call_assistant::webhook::event::{Event, EventBody, EventData};

/// Whatever is read as an event is written so that it reads as the same again, and a stored body
/// stays as it is.
pub fn event(bytes: &[u8]) {
    let event = match Event::from_bytes_verified_earlier(bytes) {
        Ok(event) => event,
        Err(error) => {
            let lines = bytes.split(|&byte| byte == b'\n');
            assert!(error.line() <= lines.count(), "{error}");
            assert!(error.column() <= bytes.len() + 1, "{error}");
            assert!(EventBody::from_stored(bytes).is_err(), "{error}");
            return;
        }
    };
    let event_type = event.event_type().as_str();
    let sendable = !event_type.is_empty() && event_type.bytes().all(|byte| byte.is_ascii_graphic());
    match EventBody::from_stored(bytes) {
        Ok(stored) => {
            assert!(sendable, "{event_type:?}");
            assert_eq!(stored.as_bytes(), bytes);
            assert_eq!((stored.id(), stored.event_type()), (&event.id, event.event_type()));
        }
        Err(error) => assert!(!sendable, "{error}"),
    }

    let written = event.to_json();
    let again = Event::from_bytes_verified_earlier(&written).unwrap();
    assert_eq!(again.to_json(), written);
    match (&event.data, &again.data) {
        // Its place in the body may be another; what stands there is not.
        (
            EventData::Unreadable { data: first, error, .. },
            EventData::Unreadable { data: second, error: same, .. },
        ) => {
            assert_eq!(first.json().get(), second.json().get());
            assert_eq!(error.kind(), same.kind());
            assert_eq!(error.field(), same.field());
            assert_eq!(event.event_type(), again.event_type());
        }
        _ => assert_eq!(event, again),
    }
}
