//! The grammar of the signature header, case by case (D-40, D-41).

use call_assistant::webhook::{DeliveryHeaders, VerifyError};

use super::{NOW, at, signer, verifier};

fn verdict(text: &[u8]) -> Result<(), VerifyError> {
    let headers = DeliveryHeaders::new().signature(text);
    verifier().verify_parts(headers, b"{}", at(NOW)).map(drop)
}

/// Why a header is malformed, with all fields.
#[track_caller]
fn malformed(text: &str) -> String {
    match verdict(text.as_bytes()) {
        Err(VerifyError::Malformed(reason)) => format!("{reason:?}"),
        other => panic!("{text}: {other:?}"),
    }
}

fn digest() -> String {
    signer().sign(b"{}", at(NOW)).as_str().split_once("v1=").unwrap().1.to_owned()
}

#[test]
fn accepts() {
    let v1 = digest();
    let other = "0".repeat(64);
    for text in [
        format!("t={NOW},v1={v1}"),
        format!("v1={v1},t={NOW}"),
        format!(" \t t={NOW}\t, v1={v1} "),
        format!("t={NOW},v0=,v2=x,T=1,V1=2,scheme=a=b,v1={v1}"),
        // D-41: all are tried, and an ill-formed one masks nothing.
        format!("t={NOW},v1={other},v1={v1}"),
        format!("t={NOW},v1={v1},v1={other}"),
        format!("t={NOW},v1=,v1={v1}"),
        format!("t={NOW},v1=zz,v1={v1},v1={v1}0"),
        format!("t={NOW},v1={},v1={v1}", v1.to_uppercase()),
        format!("t={NOW},v1={other},x=y,v1=zz,v2=,v1={v1}"),
        format!("v1={other},t={NOW},v1={other},x=,v1={v1}"),
        format!("t={NOW},v1={v1}{}", ",x=y".repeat(14)),
    ] {
        assert_eq!(verdict(text.as_bytes()), Ok(()), "{text}");
    }
}

#[test]
fn refuses_what_is_malformed() {
    let v1 = digest();
    let cases = [
        (String::new(), "NotPair { part: 1 }"),
        (" ".into(), "NotPair { part: 1 }"),
        (",".into(), "NotPair { part: 1 }"),
        (format!("t={NOW},,v1={v1}"), "NotPair { part: 2 }"),
        (format!("t={NOW},v1={v1},"), "NotPair { part: 3 }"),
        (format!("t={NOW},v1={v1},x"), "NotPair { part: 3 }"),
        (format!("t={NOW},v1={v1},=x"), "NotPair { part: 3 }"),
        (format!("t={NOW};v1={v1}"), "Timestamp { part: 1 }"),
        (format!("t ={NOW},v1={v1}"), "Space { part: 1 }"),
        (format!("t= {NOW},v1={v1}"), "Space { part: 1 }"),
        (format!("t={NOW},v1=\t{v1}"), "Space { part: 2 }"),
        (format!("t={NOW},v1={v1},x=a b"), "Space { part: 3 }"),
        (format!("t={NOW},v1={v1},x=\u{e9}"), "NotPrintable { part: 3 }"),
        (format!("t={NOW},v1={v1},x=\0"), "NotPrintable { part: 3 }"),
        (format!("t={NOW},v1={v1}\n"), "NotPrintable { part: 2 }"),
        (format!("t={NOW},v1={v1}\x7f"), "NotPrintable { part: 2 }"),
        (format!("t={NOW}"), "NoDigest"),
        (format!("t={NOW},v0={v1}"), "NoDigest"),
        (format!("t={NOW},V1={v1}"), "NoDigest"),
        (format!("v1={v1}"), "NoTimestamp"),
        (format!("T={NOW},v1={v1}"), "NoTimestamp"),
        (format!("t={NOW},t={NOW},v1={v1}"), "TwoTimestamps { part: 2 }"),
        (format!("t={NOW},v1={v1},t=1"), "TwoTimestamps { part: 3 }"),
        (format!("t={NOW},v1={v1}{}", ",x=y".repeat(15)), "TooManyParts"),
        (format!("t={NOW},v1={v1},x={}", "y".repeat(1024)), "TooLong { len: 1107 }"),
        ("a".repeat(1025), "TooLong { len: 1025 }"),
    ];
    for (text, reason) in cases {
        assert_eq!(malformed(&text), reason, "{text:?}");
    }
}

#[test]
fn a_header_may_have_1024_bytes() {
    let text = format!("t={NOW},v1={},x=", digest());
    let text = format!("{text}{}", "y".repeat(1024 - text.len()));
    assert_eq!(verdict(text.as_bytes()), Ok(()));
}

#[test]
fn the_timestamp_is_plain_digits() {
    let refused = [
        "",
        "+1",
        "-1",
        "01",
        "00",
        "1.0",
        "1e3",
        "0x1",
        "1_0",
        "12345678901234567890",
        "1:",
        "1/",
    ];
    for t in refused {
        let text = format!("t={t},v1={}", digest());
        assert_eq!(malformed(&text), "Timestamp { part: 1 }", "{t:?}");
    }
    // These are well-formed, so the digest is judged, and it is not theirs (D-42).
    for t in ["0", "1", "9223372036854775807", "9223372036854775808", "9999999999999999999"] {
        let text = format!("t={t},v1={}", digest());
        assert_eq!(verdict(text.as_bytes()), Err(VerifyError::Mismatch), "{t:?}");
    }
}

#[test]
fn a_malformed_digest_is_described_when_there_is_no_other() {
    let length = |len| format!("DigestLength {{ part: 2, len: {len} }}");
    let character = |at| format!("DigestCharacter {{ part: 2, at: {at} }}");
    let v1 = digest();
    let mut off = v1.clone();
    off.replace_range(63.., "g");
    let cases = [
        (String::new(), length(0)),
        (v1[..63].to_owned(), length(63)),
        (format!("{v1}0"), length(65)),
        (off, character(63)),
        ("=".repeat(64), character(0)),
    ];
    for (v1, reason) in cases {
        let text = format!("t={NOW},v1={v1}");
        assert_eq!(malformed(&text), reason, "{text}");
        let text = format!("t={NOW},v1={v1},v1=x");
        assert_eq!(malformed(&text), reason, "{text}");
    }
}

// D-41: uppercase is not accepted, and is named only where it is proven to be the cause.
#[test]
fn uppercase_is_named_as_the_cause() {
    let upper = digest().to_uppercase();
    let mixed = format!("{}{}", &upper[..32], &digest()[32..]);
    for v1 in [&upper, &mixed] {
        let text = format!("t={NOW},x=y,v1={v1}");
        let seen = verdict(text.as_bytes());
        assert!(matches!(seen, Err(VerifyError::UppercaseDigest { part: 3, .. })), "{text}");
        let text = format!("t={NOW},v1={},v1={v1},v1={v1}", "F".repeat(64));
        let seen = verdict(text.as_bytes());
        assert!(matches!(seen, Err(VerifyError::UppercaseDigest { part: 3, .. })), "{text}");
    }
    let text = format!("t={NOW},v1={}", "F".repeat(64));
    assert_eq!(verdict(text.as_bytes()), Err(VerifyError::Mismatch));
}

// SIG-3, SIG-5: every byte of the digest and of the body counts.
#[test]
fn nothing_but_the_very_bytes_matches() {
    let v1 = digest();
    for at in 0..64 {
        let mut changed = v1.clone();
        changed.replace_range(at..=at, if &v1[at..=at] == "0" { "1" } else { "0" });
        let text = format!("t={NOW},v1={changed}");
        assert_eq!(verdict(text.as_bytes()), Err(VerifyError::Mismatch), "digit {at}");
    }
    let body = br#"{"a":"b"}"#;
    let signature = signer().sign(body, at(NOW));
    let headers = DeliveryHeaders::new().signature(signature.as_str().as_bytes());
    for bit in 0..body.len() * 8 {
        let mut changed = *body;
        changed[bit / 8] ^= 1 << (bit % 8);
        let verdict = verifier().verify_parts(headers, &changed, at(NOW)).map(drop);
        assert_eq!(verdict, Err(VerifyError::Mismatch), "bit {bit}");
    }
}

// SIG-3: two differences are not one that cancels out, wherever the digest is folded.
#[test]
fn two_changes_to_a_digest_do_not_make_up_for_each_other() {
    let v1 = digest();
    let changed = |at: &[usize]| {
        let mut digits = v1.clone().into_bytes();
        for at in at {
            let value = char::from(digits[*at]).to_digit(16).unwrap() ^ 1;
            digits[*at] = char::from_digit(value, 16).unwrap().try_into().unwrap();
        }
        format!("t={NOW},v1={}", String::from_utf8(digits).unwrap())
    };
    for first in 0..64 {
        for second in 0..first {
            let text = changed(&[first, second]);
            assert_eq!(verdict(text.as_bytes()), Err(VerifyError::Mismatch), "{first}, {second}");
        }
    }
    assert_eq!(verdict(changed(&[]).as_bytes()), Ok(()));
}
