//! What may have happened to the header, its time, or what is signed.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use call_assistant::Timestamp;
use call_assistant::webhook::explain::Evidence;
use call_assistant::webhook::{DeliveryHeaders, SigningSecret, Verifier};

use super::{BODY, NOTHING, SECRET, explain, found, header, hex, keyed, line};
use crate::wire::{NOW, at};

// `tests/bytes/src/cause.rs` has the plain changes.
#[test]
fn a_header_that_was_changed() {
    let body = BODY.as_bytes();
    let right = header(body);
    let digest = right.split_once("v1=").unwrap().1.to_owned();
    let right_base64 = STANDARD.encode(hex::decode(&digest).unwrap());
    let hour_old = format!("{}123", NOW - 3600);
    let with = |t: &str, message: String| {
        format!("t={t},v1={}", hex(SECRET.as_bytes(), message.as_bytes()))
    };
    for (code, header) in [
        ("digest_base64", format!("t={NOW},v1={}", right_base64.trim_end_matches('='))),
        ("digest_surrounded", format!("t={NOW},v1={digest}\"")),
        ("digest_surrounded", format!("t={NOW},v1=0x{digest}")),
        // What the verifier says of the form is left out only where the digest's notation says it.
        ("digest_surrounded signature_malformed", format!("t={NOW},v1=\"{digest}\",")),
        ("signature_digest_malformed", format!("t={NOW},v1=x&v1={digest}")),
        // Signatures of other schemes say nothing, and are ignored.
        ("digest_surrounded", format!("t={NOW},v0={},x,v1=\"{digest}\"", "0".repeat(64))),
        ("time_milliseconds time_too_old", with(&hour_old, format!("{hour_old}.{BODY}"))),
        ("signed_milliseconds", with(&NOW.to_string(), format!("{NOW}000.{BODY}"))),
        ("signed_milliseconds", with(&NOW.to_string(), format!("{NOW}001.{BODY}"))),
    ] {
        // The one with a part that is no pair is not well-formed besides.
        let malformed = if header.contains(",x,") { " signature_malformed" } else { "" };
        assert_eq!(found(&header, body, SECRET), format!("proven {code}{malformed}"), "{header}");
    }
    // A clock that was never set: the time is too new, and nothing else.
    let headers = DeliveryHeaders::new().signature(right.as_bytes());
    let unset = Timestamp::from_unix(NOW / 1000).unwrap();
    let genuine = Evidence::new(headers, body, SECRET).explain(unset);
    assert_eq!(line(&genuine), "proven time_too_new");
    for (digits, words) in [(63, "cut to 63 digits"), (16, "cut to 16 digits")] {
        let header = &right[..right.len() - 64 + digits];
        let shown = explain(header, body, SECRET).to_string();
        assert_eq!(shown, format!("proven: the digest was {words}"));
    }

    // Base64 that looks like a number in hex.
    let (other, right) = (0_u32..)
        .map(|body| (body.to_string(), header(body.to_string().as_bytes())))
        .find(|(_, header)| header.contains("v1=d31"))
        .unwrap();
    let text = STANDARD.encode(hex::decode(right.split_once("v1=").unwrap().1).unwrap());
    assert!(text.starts_with("0x"), "{text}");
    for (header, codes) in [
        (format!("t={NOW},v1={text}"), "digest_base64"),
        (format!("t={NOW},v1=\"{text}\""), "digest_surrounded digest_base64"),
    ] {
        let found = found(&header, other.as_bytes(), SECRET);
        assert_eq!(found, format!("proven {codes}"), "{header}");
    }
}

/// What verifies is genuine, whatever else is in the header.
#[test]
fn what_stands_beside_the_right_digest_means_nothing() {
    let right = header(b"{}");
    let (time, digest) = right.split_once(",v1=").unwrap();
    let verifier = Verifier::new(SigningSecret::parse(SECRET).unwrap());
    for text in [
        format!("{time},v1={},v1={digest}", digest.to_uppercase()),
        format!("{time},v1={digest},v1={}", digest.to_uppercase()),
        format!("{time},v1={},v1={digest}", &digest[..32]),
        format!("{time},v1=0x{digest},v1={digest}"),
        format!("x=;t=5,{time},v1={digest}"),
        format!("x=y&t=5,v1={digest},{time}"),
        format!("{time},v1={digest},x=;v1={}", "0".repeat(64)),
    ] {
        let headers = DeliveryHeaders::new().signature(text.as_bytes());
        assert_eq!(verifier.verify_parts(headers, b"{}", at(NOW)).map(drop), Ok(()), "{text}");
        assert_eq!(found(&text, b"{}", SECRET), "proven", "{text}");
    }
    // Nor does what a kinder reader than the verifier would find in a part.
    let upper = digest.to_uppercase();
    let text = format!("{time},v1={upper},v1=x&v1={digest}");
    assert_eq!(found(&text, b"{}", SECRET), "proven digest_uppercase");
    // Each secret has made one of the two, and only the other one has written its own as it should.
    let other = keyed(b"whsec_other", b"{}");
    let (_, other) = other.split_once(",v1=").unwrap();
    let text = format!("{time},v1={},v1={other}", digest.to_uppercase());
    let headers = DeliveryHeaders::new().signature(text.as_bytes());
    let found =
        Evidence::new(headers, b"{}", SECRET).with_known_secret("whsec_other").explain(at(NOW));
    assert_eq!(line(&found), "proven secret_other");
    let says = "proven: another of the known secrets signed it, number 1";
    assert_eq!(found.to_string(), says);
}

#[test]
fn what_the_header_alone_shows_is_a_fact() {
    #[track_caller]
    fn fact(headers: DeliveryHeaders<'_>, code: &str, words: &str) {
        let explanation = Evidence::new(headers, b"{}", SECRET).explain(at(NOW));
        assert_eq!(line(&explanation), format!("proven {code}"), "{words}");
        assert_eq!(explanation.to_string(), format!("proven: the signature header {words}"));
    }
    let missing = Evidence::new(DeliveryHeaders::new(), b"{}", SECRET).explain(at(NOW));
    assert_eq!(missing.work(), 0);
    let right = header(b"{}");
    let one = DeliveryHeaders::new().signature(right.as_bytes());
    fact(DeliveryHeaders::new(), "signature_missing", "is missing");
    let twice = one.signature(right.as_bytes());
    fact(twice, "signature_repeated", "is present more than once");

    let trailing = format!("{right},");
    let semicolon = right.replace(',', ";");
    for (text, words) in [
        ("", "part 1 is not name=value"),
        ("t=1", "has no v1"),
        (&trailing, "part 3 is not name=value"),
        (&semicolon, "part 1: t is not 1 to 19 digits without a sign or a leading zero"),
    ] {
        let headers = DeliveryHeaders::new().signature(text.as_bytes());
        fact(headers, "signature_malformed", words);
    }
    // Too little of the right digest to be proof, nothing of it, or more than there is. In base64,
    // the same.
    let (time, digest) = right.split_once("v1=").unwrap();
    let long = format!("{digest}0");
    for v1 in ["abc", &digest[..15], "", &long, "zz", "!", &"Q".repeat(42)] {
        let text = format!("{time}v1={v1}");
        let words = format!("part 2: v1 has {} bytes instead of 64 hex digits", v1.len());
        let headers = DeliveryHeaders::new().signature(text.as_bytes());
        fact(headers, "signature_digest_malformed", &words);
    }
}

#[test]
fn a_time_that_is_off_is_a_fact() {
    let right = header(b"{}");
    let headers = DeliveryHeaders::new().signature(right.as_bytes());
    let within = |tolerance, late: i64| {
        let evidence = Evidence::new(headers, b"{}", SECRET);
        evidence.with_tolerance(Duration::from_secs(tolerance)).explain(at(NOW + late))
    };
    for (tolerance, late, expected) in [
        (300, 300, "proven"),
        (300, 301, "proven time_too_old"),
        (300, -300, "proven"),
        (300, -301, "proven time_too_new"),
        // As the verifier judges it.
        (400, 400, "proven"),
        (10, 11, "proven time_too_old"),
    ] {
        assert_eq!(line(&within(tolerance, late)), expected, "{late} of {tolerance}");
    }
    let late = Evidence::new(headers, b"{}", SECRET).explain(at(NOW + 301));
    let seen = late.to_string();
    assert_eq!(seen, "proven: the signature is 301s old, more than the tolerance of 300s");
}

// Each of the thousand times that may have been signed costs a digest of the body.
#[test]
fn milliseconds_are_looked_for_under_short_bodies_only() {
    let longest = vec![b'1'; 16 * 1024];
    let signed = |body: &[u8]| {
        format!(
            "t={NOW},v1={}",
            hex(SECRET.as_bytes(), &[format!("{NOW}999.").as_bytes(), body].concat())
        )
    };
    assert_eq!(found(&signed(&longest), &longest, SECRET), "proven signed_milliseconds");
    let longer = [&longest[..], b"1"].concat();
    assert_eq!(found(&signed(&longer), &longer, SECRET), NOTHING);
}
