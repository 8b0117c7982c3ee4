//! What the body looks like, if nothing could be proven.

use alloc::vec::Vec;

use serde::de::IgnoredAny;

use super::evidence::Evidence;
use super::explanation::{Cause, causes};
use crate::json::JsonObject;
use crate::webhook::headers::DeliveryHeader;

causes! {
    DELIVERY_ID_DIFFERS "delivery_id_differs":
        "header and body belong to two deliveries: the delivery header is not the body's id";
    EMPTY "body_empty": "the body is empty because something has read it before";
    CUT_OFF "body_cut_off": "the body is cut off";
    REPLACEMENT_CHARACTERS "body_replacement_characters":
        "the body was decoded with the wrong charset: it has replacement characters";
    NOT_JSON "body_not_json": "the body is not what was sent: it is not JSON";
}

/// Returns what the body looks like: each cause is a guess of its own.
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
            let object = core::str::from_utf8(body).ok().map(JsonObject::parse);
            let id = object.and_then(Result::ok).and_then(|object| object.get_str("id"));
            let claimed = evidence.headers.value(DeliveryHeader::Delivery);
            if let (Some(id), Some(claimed)) = (id, claimed)
                && id.as_bytes() != claimed
            {
                causes.push(DELIVERY_ID_DIFFERS);
            }
        }
        Err(error) if error.is_eof() => causes.push(CUT_OFF),
        Err(_) => causes.push(NOT_JSON),
    }
    causes
}
