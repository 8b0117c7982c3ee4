//! Ids, and everything that is read from JSON.

use call_assistant::TextReason;
use call_assistant::id::{CallId, EventId, MAX_ID_LEN};
use call_assistant::json::{JsonObject, ParseError};
use call_assistant::model::{
    Account, Appointment, AppointmentStatus, Call, CallList, Contact, TransferredCall,
};
use call_assistant::rest::ApiError;
use call_assistant::rest::server::StoredKey;

/// An id is exactly its text, and what is no id says why.
pub fn ids(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    let fits =
        !text.is_empty() && text.len() <= MAX_ID_LEN && bytes.iter().all(u8::is_ascii_graphic);
    match CallId::parse(text) {
        Ok(id) => assert!(fits && id.as_str() == text),
        Err(error) => match error.reason() {
            TextReason::Character { at, .. } => assert!(!bytes[at].is_ascii_graphic()),
            _ => assert!(!fits),
        },
    }
    assert_eq!(EventId::parse(text).is_ok(), fits && text.starts_with("evt_"));
}

/// Whatever is read from JSON is written so that it reads as the same again, and what cannot be
/// read is refused at a place within the text.
pub fn json(bytes: &[u8]) {
    fn round<T: PartialEq + core::fmt::Debug>(
        bytes: &[u8],
        read: fn(&[u8]) -> Result<T, ParseError>,
        write: fn(&T) -> Vec<u8>,
    ) {
        match read(bytes) {
            Ok(value) => assert_eq!(read(&write(&value)), Ok(value)),
            Err(error) => {
                let lines = bytes.split(|&byte| byte == b'\n');
                assert!(error.line() <= lines.count(), "{error}");
                assert!(error.column() <= bytes.len() + 1, "{error}");
            }
        }
    }
    round(bytes, Account::from_json, Account::to_json);
    round(bytes, Call::from_json, Call::to_json);
    round(bytes, TransferredCall::from_json, TransferredCall::to_json);
    round(bytes, Appointment::from_json, Appointment::to_json);
    round(bytes, Contact::from_json, Contact::to_json);
    round(bytes, ApiError::from_json, ApiError::to_json);
    // A page read without `has_more` is written with it, so it is the second reading that holds.
    if let Ok(list) = CallList::from_json(bytes) {
        round(&list.to_json(), CallList::from_json, CallList::to_json);
    }
    if let Ok(key) = serde_json::from_slice::<StoredKey>(bytes) {
        let written = serde_json::to_vec(&key).unwrap();
        assert_eq!(serde_json::from_slice::<StoredKey>(&written).unwrap(), key);
    }
    if let Ok(text) = core::str::from_utf8(bytes)
        && let Ok(object) = JsonObject::parse(text)
    {
        let changed = Appointment::from(object).cancelled();
        assert_eq!(changed.status(), Some(AppointmentStatus::Cancelled), "{text}");
        assert_eq!(changed.cancelled(), changed, "{text}");
        let seen = JsonObject::parse(changed.object().as_str());
        assert_eq!(seen.as_ref(), Ok(changed.object()), "{text}");
    }
}
