//! The product's name and what comes of it; enums of strings that can grow.

use std::cmp::Ordering;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use call_assistant::Product;
use call_assistant::model::AppointmentStatus;
use call_assistant::rest::{ApiKey, ErrorCode, ErrorType, Mode, Scope};

/// Names of the specification, written with its neutral word (DEL-1, KEY-1).
#[test]
fn the_default_product_is_the_specifications() {
    let product = Product::default();
    assert_eq!(product, Product::new("Service").unwrap());
    assert_eq!(product.name(), "Service");
    assert_eq!(product.signature_header(), "X-Service-Signature");
    assert_eq!(product.event_header(), "X-Service-Event");
    assert_eq!(product.delivery_header(), "X-Service-Delivery");
    assert_eq!(product.user_agent(), "Service-Webhooks/1.0");
    for (mode, prefix) in [(Mode::Live, "service_live_"), (Mode::Test, "service_test_")] {
        assert!(ApiKey::from_random(&product, mode, [7; 32]).reveal().starts_with(prefix));
    }
    assert_eq!(format!("{product:?}"), r#"Product("Service")"#);
}

#[test]
fn a_name_is_fit_for_headers_keys_and_user_agent_or_refused() {
    let longest = "a".repeat(Product::MAX_LEN);
    for name in ["A", "acme", "Acme-Voice-2", longest.as_str()] {
        assert_eq!(Product::new(name).unwrap().name(), name);
    }
    let long = longest + "a";
    let allowed = "letters and digits in words joined by single hyphens, a letter first";
    let character = |at| format!("has a byte at {at} that is not allowed there: {allowed}");
    for (error, names) in [
        ("is empty".to_owned(), &[""][..]),
        ("has 33 bytes, more than 32".to_owned(), &[&long]),
        (character(0), &["2acme", "-acme"]),
        (character(2), &["ac me", "ac_me"]),
        (character(3), &["ac--me", "acm\u{e9}"]),
        (character(4), &["acme-", "acme\r\nx: y"]),
    ] {
        for name in names {
            let refused = Product::new(name).unwrap_err().to_string();
            assert_eq!(refused, format!("product name {error}"), "{name:?}");
        }
    }
}

/// A known text is its own variant and nothing else; an unknown one survives (ERR-4).
macro_rules! grows {
    ($name:ident) => {
        for known in $name::KNOWN {
            assert_eq!(&$name::from(known.as_str()), known);
            assert!(!matches!(known, $name::Other(_)), "{known}");
            let json = serde_json::to_string(known).unwrap();
            assert_eq!(json, format!("\"{known}\""));
            assert_eq!(&serde_json::from_str::<$name>(&json).unwrap(), known, "{known}");
            // The texts are exact: the case of letters counts.
            let upper = known.as_str().to_uppercase();
            assert_eq!($name::from(upper.as_str()).as_str(), upper);
            assert!(matches!($name::from(upper.as_str()), $name::Other(_)), "{upper}");
        }
        for unknown in ["", "brand.new", "\u{1f4de}", "a\"b\\c\n"] {
            let value = $name::from(unknown);
            let $name::Other(text) = &value else { panic!("{unknown:?} is not known") };
            assert_eq!(text.as_str(), unknown);
            // Shown, it stays in one line.
            assert_eq!(value.to_string(), unknown.replace('\n', "\\n"), "{unknown:?}");
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<$name>(&json).unwrap(), value, "{unknown:?}");
        }
        assert!(serde_json::from_str::<$name>("5").unwrap_err().is_data());
    };
}

#[test]
fn enums_of_strings_grow() {
    grows!(ErrorCode);
    grows!(ErrorType);
    grows!(Scope);
    grows!(AppointmentStatus);
}

#[test]
fn texts_without_a_name_are_told_apart() {
    let [a, b] = ["a", "b"].map(ErrorCode::from);
    assert_eq!(a, ErrorCode::from("a"));
    assert_ne!(a, b);
    assert_eq!((a.partial_cmp(&b), b.cmp(&a)), (Some(Ordering::Less), Ordering::Greater));
    assert_eq!(format!("{a:?}"), r#"Other("a")"#);

    let hashed = |code: &ErrorCode| BuildHasherDefault::<DefaultHasher>::default().hash_one(code);
    assert_eq!(hashed(&a), hashed(&ErrorCode::from("a")));
    assert_ne!(hashed(&a), hashed(&b));
}
