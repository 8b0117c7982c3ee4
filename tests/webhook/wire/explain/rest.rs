//! Several causes, other deliveries, and guesses.

use call_assistant::webhook::DeliveryHeaders;
use call_assistant::webhook::explain::Evidence;

use super::{BODY, NOTHING, SECRET, found, header, keyed, line};
use crate::wire::{NOW, at};

#[test]
fn two_things_at_once() {
    let body = BODY.as_bytes();
    let right = header(body);
    let upper = right.to_uppercase().replace("T=", "t=").replace("V1=", "v1=");
    let quoted = format!("\"{SECRET}\"");
    let line_end = [body, b"\n"].concat();
    let marked = [b"\xef\xbb\xbf", body, b"\r\n"].concat();
    for (codes, header, received, secret) in [
        ("body_line_end_added secret_quotes", &right, &line_end, &*quoted),
        ("body_line_end_added body_byte_order_mark_added", &right, &marked, SECRET),
        ("body_line_end_added digest_uppercase", &upper, &line_end, SECRET),
    ] {
        assert_eq!(found(header, received, secret), format!("proven {codes}"));
    }
}

#[test]
fn another_delivery() {
    let body = BODY.as_bytes();
    let right = header(body);
    let headers = DeliveryHeaders::new().signature(right.as_bytes());

    // This header belongs to that body.
    let other = br#"{"id":"evt_2"}"#;
    let others = header(other);
    let others = DeliveryHeaders::new().signature(others.as_bytes());
    let found = Evidence::new(others, body, SECRET)
        .known_delivery(DeliveryHeaders::new().signature(b"t=1,v1=lost"), b"{}")
        .known_delivery(DeliveryHeaders::new(), other)
        .explain(at(NOW));
    assert_eq!(line(&found), "proven delivery_other");
    let words = "proven: header and body belong to two deliveries, the other being number 2";
    assert_eq!(found.to_string(), words);

    // That header belongs to this body.
    let wrong = header(b"who knows");
    let wrong = DeliveryHeaders::new().signature(wrong.as_bytes());
    let found = Evidence::new(wrong, body, SECRET)
        .known_delivery(DeliveryHeaders::new().signature(right.as_bytes()), b"lost")
        .explain(at(NOW));
    assert_eq!(line(&found), "proven delivery_other");
    assert!(found.to_string().ends_with("number 1"), "{found}");

    // Another attempt of the same event has the right body: what became of this one says more.
    let received = [body, b"\n"].concat();
    let found = Evidence::new(headers, &received, SECRET)
        .known_delivery(DeliveryHeaders::new(), body)
        .explain(at(NOW));
    assert_eq!(line(&found), "proven body_line_end_added");
}

/// Attempts of one event share body and delivery header, and are not two deliveries.
#[test]
fn another_attempt_is_not_another_delivery() {
    let body = BODY.as_bytes();
    let first = header(body);
    let known = DeliveryHeaders::new().signature(first.as_bytes()).delivery(b"evt_1");
    let retried = keyed(b"whsec_rotated", body);
    let retried = DeliveryHeaders::new().signature(retried.as_bytes()).delivery(b"evt_1");
    let cut = &body[..body.len() - 9];
    for (what, headers, received, expected) in [
        ("signed with a rotated secret", retried, body, NOTHING),
        ("cut off", known, cut, "proven body_cut_off"),
    ] {
        let found =
            Evidence::new(headers, received, SECRET).known_delivery(known, body).explain(at(NOW));
        assert_eq!(line(&found), expected, "{what}");
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
        ("", "guessed body_empty"),
        ("{\"id\":\"evt_", "guessed body_cut_off"),
        ("id=evt_1", "guessed body_not_json"),
        (r#"{"id":"evt_2"}"#, "guessed delivery_id_differs"),
        ("{\"id\":\"evt_1\",\"a\":\"\u{fffd}\"}", "guessed body_replacement_characters"),
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
    assert_eq!(
        guess(b"", b"").to_string(),
        "a guess: the body is empty because something has read it before"
    );
    let nothing = guess(b"{}", b"").to_string();
    assert!(nothing.starts_with("no cause found: "), "{nothing}");
    // Several guesses are alternatives.
    let several = guess("{\"id\":\"evt_2\",\"a\":\"\u{fffd}\"}".as_bytes(), b"evt_1");
    let [first, second] = several.causes() else { panic!("{several}") };
    assert_eq!(several.to_string(), format!("a guess: {first}, or {second}"));
}
