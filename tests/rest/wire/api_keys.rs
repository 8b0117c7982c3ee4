//! API keys: the text, and what shows of it.

use std::collections::HashSet;

use call_assistant::Product;
use call_assistant::rest::server::KeyDigest;
use call_assistant::rest::{ApiKey, Mode};

const SECRET: &str = "service_live_00112233445566778899aabbccddeeff";

fn product() -> Product {
    Product::default()
}

/// KEY-1, RES-2: the prefix tells production from test.
#[test]
fn a_key_begins_with_one_of_the_products_prefixes() {
    let long = format!("service_live_{}", "x".repeat(ApiKey::MAX_LEN));
    let longest = &long[..ApiKey::MAX_LEN];
    for (text, mode) in
        [(SECRET, Mode::Live), ("service_test_x", Mode::Test), (longest, Mode::Live)]
    {
        let key = ApiKey::parse_for(&product(), text).unwrap();
        assert_eq!((key.mode(), key.reveal()), (mode, text));
        assert_eq!(key.mode().is_live(), mode == Mode::Live, "{text}");
    }
    let prefix = "does not begin with a prefix such as service_live_ or service_test_";
    let only = "has nothing after a prefix such as service_live_ or service_test_";
    for (words, texts) in [
        (prefix, &["", "acme_live_1234", "SERVICE_LIVE_1234", "service_live"][..]),
        (only, &["service_live_", "service_test_"]),
        ("has a byte at 17 that is not visible ASCII", &["service_live_1234\n"]),
        ("has a byte at 0 that is not visible ASCII", &[" service_live_1234"]),
        ("has a byte at 13 that is not visible ASCII", &["service_live_\u{e9}"]),
        ("has 268 bytes, more than 255", &[&long]),
    ] {
        for text in texts {
            let refused = ApiKey::parse_for(&product(), text).unwrap_err();
            assert_eq!(refused.to_string(), format!("API key {words}"), "{text}");
        }
    }
}

/// A customer knows no product's name: the form is checked, and the mode read.
#[test]
fn a_key_is_read_without_its_product() {
    let slug = format!("a{}", "_9".repeat(20));
    for (text, mode, hint) in [
        (SECRET, Mode::Live, "service_live_...eeff"),
        ("acme_voice_test_x", Mode::Test, "acme_voice_test_..."),
        // What follows the first mark is the secret.
        ("service_live_a_test_b", Mode::Live, "service_live_..."),
        ("service_test_a_live_b", Mode::Test, "service_test_..."),
        (&format!("{slug}_live_x"), Mode::Live, &format!("{slug}_live_...")),
    ] {
        let key = ApiKey::parse(text).unwrap();
        assert_eq!((key.mode(), &*key.hint()), (mode, hint), "{text}");
        assert_eq!(text.parse::<ApiKey>(), Ok(key), "{text}");
    }
    assert_eq!(ApiKey::parse(SECRET), ApiKey::parse_for(&product(), SECRET));
    for (error, texts) in [
        (
            "Prefix",
            &["", "_live_x", "9a_live_x", "Service_live_x", "serv-ice_live_x", "whsec_x"][..],
        ),
        ("PrefixOnly", &["service_live_"]),
        ("Character { at: 13 }", &["service_live_ x"]),
    ] {
        for text in texts {
            assert_eq!(format!("{:?}", ApiKey::parse(text).unwrap_err().reason()), error, "{text}");
        }
    }
}

#[test]
fn a_new_key_holds_all_the_callers_randomness() {
    let mut made = HashSet::new();
    for mode in [Mode::Live, Mode::Test] {
        for byte in 0..32 {
            let mut bytes = [0; 32];
            bytes[byte] = 1;
            let key = ApiKey::from_random(&product(), mode, bytes);
            let read = ApiKey::parse_for(&product(), key.reveal());
            assert_eq!((read, key.mode()), (Ok(key.clone()), mode), "byte {byte}");
            assert!(made.insert(key.reveal().to_owned()), "byte {byte} is not in the key");
        }
    }
}

#[test]
fn a_hint_shows_four_characters_of_a_key_that_can_spare_them() {
    for (text, hint) in [
        ("service_live_0123456789abcdef0123", "service_live_...0123"),
        ("service_live_0123456789abcdef012", "service_live_..."),
    ] {
        assert_eq!(ApiKey::parse_for(&product(), text).unwrap().hint(), hint);
    }
}

/// KEY-7: what may be shown of a key, and of its digest.
#[test]
fn debug_shows_the_hint_and_the_head_of_the_digest() {
    let key = ApiKey::parse_for(&product(), SECRET).unwrap();
    assert_eq!(format!("{key:?}"), r#"ApiKey("service_live_...eeff")"#);
    let digest = KeyDigest::compute(SECRET.as_bytes());
    let text = serde_json::to_value(digest).unwrap();
    let head = &text.as_str().unwrap()[..8];
    assert_eq!(format!("{digest:?}"), format!("KeyDigest({head}...)"));
}

#[test]
fn keys_are_equal_when_their_texts_are() {
    let key = |text| ApiKey::parse_for(&product(), text).unwrap();
    assert_eq!(key("service_live_1"), key("service_live_1"));
    assert_ne!(key("service_live_1"), key("service_live_2"));
    assert_ne!(key("service_live_1"), key("service_test_1"));
}
