//! What may have happened to the secret.

use call_assistant::webhook::DeliveryHeaders;
use call_assistant::webhook::explain::Evidence;

use super::{BODY, SECRET, explain, found, header, keyed, line};
use crate::wire::{NOW, at};

// D-44, and what else becomes of secrets. `tests/bytes/src/cause.rs` has the plain changes.
#[test]
fn a_secret_that_was_changed() {
    let decoded = b"please do not decode this";
    let bare = &SECRET["whsec_".len()..];
    let quoted = format!("\"{SECRET}\"");
    for (codes, key, given) in [
        ("secret_space", SECRET.as_bytes(), &format!(" \u{a0}{SECRET}\t")),
        ("secret_space", SECRET.as_bytes(), &format!("\u{1b}{SECRET}\0")),
        ("secret_space", SECRET.as_bytes(), &format!("{SECRET}\0")),
        ("secret_space secret_quotes", SECRET.as_bytes(), &format!("'{SECRET}'\n")),
        ("secret_quotes secret_space", SECRET.as_bytes(), &format!("\"{SECRET}\n\"")),
        ("secret_quotes secret_label", SECRET.as_bytes(), &format!("WEBHOOK_SECRET=\"{SECRET}\"")),
        ("signer_base64_decoded", &decoded[..], &bare.to_owned()),
        ("secret_space signer_base64_decoded", decoded, &format!("{SECRET}\n")),
        ("secret_quotes signer_line_end", format!("{SECRET}\n").as_bytes(), &quoted),
    ] {
        let found = found(&keyed(key, BODY.as_bytes()), BODY.as_bytes(), given);
        assert_eq!(found, format!("proven {codes}"), "{given:?}");
    }
    let explanation = explain(&keyed(decoded, b"{}"), b"{}", SECRET);
    let met = "proven: the signer base64-decodes the secret, as libraries for Standard Webhooks do";
    assert_eq!(explanation.to_string(), met);
}

/// A verifier that accepts two secrets, as during a rotation, is no cause: only what is known and not
/// accepted is another secret, and its number does not count the accepted ones.
#[test]
fn an_accepted_secret_is_no_other_secret() {
    let right = header(BODY.as_bytes());
    let headers = DeliveryHeaders::new().signature(right.as_bytes());
    let changed = [BODY.as_bytes(), b"\n"].concat();
    let current = |body| Evidence::new(headers, body, "whsec_current");
    let known = |body| current(body).with_known_secret("whsec_staging");
    for (row, evidence, causes, number) in [
        ("as it is", current(BODY.as_bytes()).with_accepted_secret(SECRET), "proven", None),
        (
            "changed",
            known(&changed).with_accepted_secret(SECRET),
            "proven body_line_end_added",
            None,
        ),
        (
            "known, behind an accepted one",
            known(BODY.as_bytes()).with_known_secret(SECRET).with_accepted_secret("whsec_previous"),
            "proven secret_other",
            Some(2),
        ),
    ] {
        let found = evidence.explain(at(NOW));
        assert_eq!(line(&found).trim(), causes, "{row}");
        assert_eq!(found.causes().last().and_then(|cause| cause.number()), number, "{row}");
    }
}

/// A text that no verifier takes is wrong, though it made the digest. Who has it is not known.
#[test]
fn what_signed_and_is_no_secret_is_said() {
    for (given, error) in [
        (&SECRET["whsec_".len()..], "does not begin with whsec_"),
        ("whsec_abc\n", "has a byte at 9 that is not visible ASCII"),
    ] {
        let explanation = explain(&keyed(given.as_bytes(), b"{}"), b"{}", given);
        assert_eq!(line(&explanation), "proven secret_unusable", "{given:?}");
        let sentence = format!(
            "proven: the text given signed, but is no secret, and may be guessed: \
             the signing secret {error}"
        );
        assert_eq!(explanation.to_string(), sentence);
    }
}

#[test]
fn the_evidence_shows_neither_secrets_nor_bodies() {
    let header = header(b"{}");
    let headers = DeliveryHeaders::new().signature(header.as_bytes());
    let evidence = Evidence::new(headers, b"{}", SECRET)
        .with_known_secret("whsec_another")
        .with_known_delivery(headers, b"[]");
    assert_eq!(
        format!("{evidence:?}"),
        format!("Evidence {{ headers: {headers:?}, body_len: 2, secrets: 2, deliveries: 1 }}")
    );
}
