//! Ids: opaque, bounded, visible ASCII, ordered bytewise.

use std::collections::BTreeMap;

use call_assistant::id::{
    AccountId, AppointmentId, CallId, ContactId, CredentialId, DeliveryId, EndpointId, EventId,
    MAX_ID_LEN, RequestId,
};

macro_rules! each {
    ($check:ident) => {
        $check!(AccountId, "account id", "");
        $check!(AppointmentId, "appointment id", "");
        $check!(CallId, "call id", "");
        $check!(ContactId, "contact id", "");
        $check!(CredentialId, "credential id", "");
        $check!(DeliveryId, "delivery id", "");
        $check!(EndpointId, "endpoint id", "");
        // The two whose prefix the specification gives (EVT-1, ERR-1).
        $check!(EventId, "event id", "evt_");
        $check!(RequestId, "request id", "req_");
    };
}

#[test]
fn an_id_is_one_to_255_bytes_of_visible_ascii() {
    macro_rules! check {
        ($id:ident, $what:literal, $prefix:literal) => {
            let full = format!("{}{}", $prefix, "x".repeat(MAX_ID_LEN - $prefix.len()));
            for text in [concat!($prefix, "1"), concat!($prefix, "a/b%2e..?&\"~!"), &full] {
                let id = $id::parse(text).unwrap();
                assert_eq!((id.as_str(), &*id.to_string()), (text, text), "{}", $what);
                assert_eq!(text.parse(), Ok(id.clone()), "{}", $what);
                let json = serde_json::to_string(&id).unwrap();
                assert_eq!(serde_json::from_str::<$id>(&json).unwrap(), id, "{}", $what);
            }
            let at = |at: usize| {
                format!("has a byte at {} that is not visible ASCII", $prefix.len() + at)
            };
            let long = format!("has 256 bytes, more than {MAX_ID_LEN}");
            for (text, words) in [
                (String::new(), "is empty".to_owned()),
                (full + "x", long),
                (concat!($prefix, " a").to_owned(), at(0)),
                (concat!($prefix, "ab ").to_owned(), at(2)),
                (concat!($prefix, "a\0").to_owned(), at(1)),
                (concat!($prefix, "a\n").to_owned(), at(1)),
                (concat!($prefix, "a\u{e9}").to_owned(), at(1)),
            ] {
                let error = $id::parse(&text).unwrap_err().to_string();
                assert_eq!(error, format!("{} {words}", $what), "{text:?}");
            }
            // A prefix is checked where the specification gives one, and nowhere else.
            let read = $id::parse("whatever").map_err(|error| error.to_string());
            let words = format!("{} does not begin with {}", $what, $prefix);
            assert_eq!(read.is_ok(), matches!($prefix, ""), "{read:?}");
            assert!(read.is_ok() || read == Err(words), "{}", $what);
        };
    }
    each!(check);
}

#[test]
fn a_new_id_is_made_of_the_callers_bytes_and_reads_back() {
    macro_rules! check {
        ($id:ident, $what:literal, $prefix:literal) => {
            let mut bytes = [0xab; 16];
            bytes[15] = 0x01;
            let id = $id::from_random(bytes);
            assert!(id.as_str().starts_with($prefix));
            assert!(id.as_str().ends_with(&format!("{}01", "ab".repeat(15))));
            assert!(id.as_str().len() <= 40);
            assert_eq!($id::parse(id.as_str()), Ok(id.clone()));
            bytes[0] ^= 1;
            assert_ne!($id::from_random(bytes), id);
        };
    }
    each!(check);
}

/// Ids compare bytewise (D-20), so a map of them can be asked with text.
#[test]
fn ids_are_ordered_as_their_bytes_are() {
    let texts = ["!", "0", "9", "A", "Z", "_", "a", "a!", "aa", "b", "~"];
    let ids: Vec<CallId> = texts.iter().map(|text| CallId::parse(text).unwrap()).collect();
    assert!(ids.is_sorted());
    let map: BTreeMap<CallId, usize> = ids.into_iter().zip(0..).collect();
    assert_eq!(map.get("aa"), Some(&8));
}

/// What was mistaken for an id may be a secret, so errors tell where and not what.
#[test]
fn errors_name_the_id_and_the_bound_but_never_the_text() {
    let shown = serde_json::from_str::<EventId>(r#""whsec_0123456789""#).unwrap_err().to_string();
    assert!(shown.starts_with("event id does not begin with evt_"), "{shown}");
    assert!(!shown.contains("whsec_"), "{shown}");
}

/// The same occurrence has the same id for ever, computed here with another implementation.
#[test]
fn derived_event_ids_never_change() {
    for (parts, hex) in [
        (&[][..], "e3b0c44298fc1c149afbf4c8996fb924"),
        (&["acct_1", "call.completed", "call_8fK2"], "8d0f53dc1a996b150d95fc9f0961e3bc"),
        (&["", ""], "374708fff7719dd5979ec875d56cd228"),
        (&["é"], "1d9b2f68e31ef2b6730c67d7729ca6a5"),
    ] {
        let id = EventId::derived(parts);
        assert_eq!(id.as_str(), format!("evt_{hex}"), "{parts:?}");
        assert_eq!(EventId::parse(id.as_str()), Ok(id));
    }
}
