//! Guesses from the form of the body, if nothing was proven.

use alloc::string::String;
use alloc::vec::Vec;

use serde::de::IgnoredAny;

use super::evidence::Evidence;
use super::explanation::Cause;
use crate::id::MAX_ID_LEN;
use crate::json::JsonObject;
use crate::webhook::headers::DeliveryHeader;

const DELIVERY_ID_DIFFERS: Cause = Cause::new(
    "delivery_id_differs",
    "header and body belong to two deliveries: the delivery header is not the body's id",
);
const EMPTY: Cause =
    Cause::new("body_empty", "the body is empty because something has read it before");
const CUT_OFF: Cause = Cause::new("body_cut_off", "the body is cut off");
const GZIP: Cause =
    Cause::new("body_gzip", "the body is compressed with gzip, and what it holds was signed");
const REPLACEMENT_CHARACTERS: Cause = Cause::new(
    "body_replacement_characters",
    "the body was decoded with the wrong charset: it has replacement characters",
);
const NOT_JSON: Cause =
    Cause::new("body_not_json", "the body is not what was sent: it is not JSON");

/// Returns guesses about the body. Each cause is a separate guess.
pub(super) fn guesses(evidence: &Evidence<'_>) -> Vec<Cause> {
    let body = evidence.body;
    if body.is_empty() {
        return alloc::vec![EMPTY];
    }
    let mut causes = Vec::new();
    if body.windows(3).any(|bytes| bytes == "\u{fffd}".as_bytes()) {
        causes.push(REPLACEMENT_CHARACTERS);
    }
    match serde_json::from_slice::<IgnoredAny>(body) {
        Ok(_) => {
            let id = id(body);
            let claimed = evidence.headers.value(DeliveryHeader::Delivery);
            if let (Some(id), Some(claimed)) = (id, claimed)
                && id.as_bytes() != claimed
            {
                causes.push(DELIVERY_ID_DIFFERS);
            }
        }
        Err(error) if error.is_eof() => causes.push(CUT_OFF),
        Err(_) if body.starts_with(b"\x1f\x8b") => causes.push(GZIP),
        Err(_) => causes.push(NOT_JSON),
    }
    causes
}

/// Returns the id of the event in a body.
pub(super) fn id(body: &[u8]) -> Option<String> {
    let id = JsonObject::parse(core::str::from_utf8(body).ok()?).ok()?.get_str("id");
    id.filter(|id| id.len() <= MAX_ID_LEN)
}

/// Describes how a body differs from the signed body of known delivery `number`. Nothing proves who
/// created the differing body.
pub(super) fn changed(body: &[u8], signed: &[u8], number: usize) -> Cause {
    let known = alloc::format!("the header is that of known delivery number {number}");
    let same = body.iter().zip(signed).take_while(|(one, other)| one == other).count();
    let (code, how) = match same {
        _ if body.is_empty() => ("body_empty", "is empty".into()),
        same if same == body.len() => ("body_cut_off", "is cut off".into()),
        same => ("body_changed", alloc::format!("differs from byte {same} on")),
    };
    let sentence = alloc::format!("{known}, and this body is not the one it signs: it {how}");
    Cause::with_details(code, sentence).with_number(number)
}
