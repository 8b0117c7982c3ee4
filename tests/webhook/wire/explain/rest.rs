//! Other deliveries, and guesses. `accidents.rs` has more of each.

use call_assistant::webhook::DeliveryHeaders;
use call_assistant::webhook::explain::Evidence;

use super::{BODY, NOTHING, SECRET, header, keyed, line};
use crate::wire::{NOW, at};

#[test]
fn another_delivery() {
    let body = BODY.as_bytes();
    let right = header(body);

    // This header belongs to that body.
    let other = br#"{"id":"evt_2"}"#;
    let others = header(other);
    let others = DeliveryHeaders::new().signature(others.as_bytes());
    let words = "proven: header and body are not of one delivery: \
                 the header is that of known delivery number 2";
    for received in [body, b"pwned"] {
        let found = Evidence::new(others, received, SECRET)
            .with_known_delivery(DeliveryHeaders::new().signature(b"t=1,v1=lost"), b"{}")
            .with_known_delivery(DeliveryHeaders::new(), other)
            .explain(at(NOW));
        assert_eq!(line(&found), "proven delivery_other");
        assert_eq!(found.to_string(), words);
        assert_eq!(found.causes()[0].number(), Some(2));
    }

    // That header belongs to this body.
    let wrong = header(b"who knows");
    let wrong = DeliveryHeaders::new().signature(wrong.as_bytes());
    let found = Evidence::new(wrong, body, SECRET)
        .with_known_delivery(DeliveryHeaders::new().signature(right.as_bytes()), b"lost")
        .explain(at(NOW));
    assert_eq!(line(&found), "proven delivery_other");
    assert!(found.to_string().ends_with("the body is that of known delivery number 1"), "{found}");
}

/// Whoever has seen a delivery can send its header again, with any body and delivery header. What is
/// proven is whose the header is, and not that anything became of its body on the way.
#[test]
fn a_header_sent_again_proves_nothing_of_the_body() {
    let genuine = BODY.as_bytes();
    let signature = header(genuine);
    let seen = DeliveryHeaders::new().signature(signature.as_bytes()).delivery(b"evt_1");
    let header = "the header is that of known delivery number 1";
    let this = format!("proven: {header}, and this body is not the one it signs: it");
    for (body, code, words) in [
        (
            &br#"{"id":"evt_9"}"#[..],
            "delivery_other",
            format!("proven: header and body are not of one delivery: {header}"),
        ),
        (b"pwned", "body_changed", format!("{this} differs from byte 0 on")),
        (b"", "body_empty", format!("{this} is empty")),
        (&genuine[..20], "body_cut_off", format!("{this} is cut off")),
    ] {
        let found =
            Evidence::new(seen, body, SECRET).with_known_delivery(seen, genuine).explain(at(NOW));
        assert_eq!(line(&found), format!("proven {code}"));
        assert_eq!(found.to_string(), words);
    }
}

/// However hostile a delivery is, explaining it takes a bounded number of bytes hashed and compared:
/// 64 times those given. An id that is longer than any id is none, and of a header no more digests
/// are read than a well-formed one has.
#[test]
fn the_work_is_bounded() {
    const MIB: usize = 1024 * 1024;
    let forged = keyed(b"whsec_who-knows", b"who knows");
    let digests: String = (0..50_000_u64).map(|n| format!(",v1={n:016x}")).collect();
    let many = format!("t={NOW}{digests}");
    let text = |len: usize| format!(r#"{{"id":"{}","x":"{}"}}"#, "a".repeat(len), "a".repeat(len));
    let work = |header: &str, body: &[u8], known: &[&[u8]]| {
        let headers = DeliveryHeaders::new().signature(header.as_bytes());
        let evidence = Evidence::new(headers, body, SECRET).with_known_secret("whsec_another");
        let evidence =
            known.iter().fold(evidence, |it, body| it.with_known_delivery(headers, body));
        let given = (1 + known.len()) * header.len()
            + known.iter().map(|body| body.len()).sum::<usize>()
            + body.len();
        let work = evidence.explain(at(NOW)).work();
        assert!(work <= 64 * given.max(2 * MIB), "{work} of {given} bytes");
        work
    };
    let (long, not_json) = (text(MIB), &b"not json"[..]);
    for (row, header, body, known, most) in [
        ("nothing", &forged, &b""[..], vec![], MIB),
        (
            "an id of a MiB, and a known delivery",
            &forged,
            long.as_bytes(),
            vec![not_json],
            128 * MIB,
        ),
        ("many known deliveries", &forged, long.as_bytes(), vec![not_json; 500], 132 * MIB),
        ("known deliveries as long", &forged, b"{}", vec![long.as_bytes(); 3], 16 * MIB),
        ("50,000 digests", &many, b"{}", vec![], 4 * MIB),
        ("50,000 digests, a known delivery", &many, b"{}", vec![not_json], 4 * MIB),
    ] {
        let work = work(header, body, &known);
        assert!(work > 0 && work <= most, "{row}: {work}");
    }

    // Each known delivery adds as much as the one before: two digests for each of the two secrets.
    let of = |count: usize| work(&forged, b"{}", &vec![&long.as_bytes()[..2048]; count]);
    let (none, one) = (of(0), of(1) - of(0));
    assert!(one <= 4 * 3 * 1024, "{one}");
    for count in [10, 300, 1000] {
        assert_eq!(of(count) - none, count * one, "{count} known deliveries");
    }

    // A text of 256 bytes that both bodies have is no id, so it makes no event of them.
    for (len, code) in [(255, "body_changed"), (256, "delivery_other")] {
        let (body, known) = (text(len), format!("not json {}", "a".repeat(len)));
        let signature = header(known.as_bytes());
        let headers = DeliveryHeaders::new().signature(signature.as_bytes());
        let found = Evidence::new(headers, body.as_bytes(), SECRET)
            .with_known_delivery(headers, known.as_bytes())
            .explain(at(NOW));
        assert_eq!(line(&found), format!("proven {code}"), "{len}");
    }
    // The seventeenth digest is one too many.
    for (before, proven) in [(15, true), (16, false)] {
        let right = header(b"{}").replace("t=", &format!("t={NOW}{},x=", &digests[..20 * before]));
        let headers = DeliveryHeaders::new().signature(right.as_bytes());
        let found = Evidence::new(headers, b"{}\n", SECRET).explain(at(NOW));
        assert_eq!(line(&found).contains("line_end_added"), proven, "{before}: {right}");
    }
}

#[test]
fn what_cannot_be_proven_is_a_guess_or_nothing() {
    let guess = |body: &[u8], id: &[u8]| {
        let forged = keyed(b"whsec_who-knows", b"who knows");
        let headers = DeliveryHeaders::new().signature(forged.as_bytes()).delivery(id);
        Evidence::new(headers, body, SECRET).explain(at(NOW))
    };
    let deep =
        format!(r#"{{"id":"evt_1","a":{0}{{"b":{0}1{1}}}{1}}}"#, "[".repeat(40), "]".repeat(40));
    for (body, expected) in [
        (r#"{"id":"evt_1"}"#, NOTHING),
        (r#"{"type":"evt_2","id":"evt_1"}"#, NOTHING),
        // JSON that is too deep to be written again, or that no text can hold, is left as it is. Its
        // id is read all the same.
        (&deep, NOTHING),
        (r#"{"id":"evt_2","a":"\ud800"}"#, "guessed delivery_id_differs"),
        (r#"{"id":"evt_2","\ud800":1}"#, "guessed delivery_id_differs"),
        (r#"{"id":"evt_2","a":[{"b":"\ud800"}]}"#, "guessed delivery_id_differs"),
    ] {
        assert_eq!(line(&guess(body.as_bytes(), b"evt_1")), expected, "{body}");
    }
    let seen = guess(b"", b"").to_string();
    assert_eq!(seen, "a guess: the body is empty because something has read it before");
    let nothing = guess(b"{}", b"").to_string();
    assert!(nothing.starts_with("no cause found: "), "{nothing}");
    // Several guesses are alternatives.
    let several = guess("{\"id\":\"evt_2\",\"a\":\"\u{fffd}\"}".as_bytes(), b"evt_1");
    let [first, second] = several.causes() else { panic!("{several}") };
    assert_eq!(several.to_string(), format!("a guess: {first}, or {second}"));
}
