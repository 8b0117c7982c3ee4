//! What the verifier says, in the words of `tests/vectors/README.md`.

use call_assistant::webhook::{MalformedReason, Verified, VerifyError};
use serde_json::{Value, json};

/// Returns a verdict, and what goes with it.
pub(crate) fn of(result: &Result<Verified<'_>, VerifyError>) -> Value {
    use VerifyError as E;
    match result {
        Ok(verified) => {
            let (secret, age) = (verified.secret_index(), verified.age_seconds());
            json!({ "verdict": "accepted", "secret": secret, "age": age })
        }
        Err(error) => match *error {
            E::Missing => named("missing"),
            E::Repeated => json!({ "verdict": "repeated", "header": "signature" }),
            E::Malformed(reason) => malformed(reason),
            E::UppercaseDigest { part, .. } => at_part("digest_uppercase", part),
            E::Mismatch => named("mismatch"),
            E::TooOld { age, .. } => json!({ "verdict": "too_old", "by": age.as_secs() }),
            E::TooNew { ahead, .. } => json!({ "verdict": "too_new", "by": ahead.as_secs() }),
            // One that a later version tells apart.
            _ => named("refused"),
        },
    }
}

/// Returns the verdict in one word.
pub(crate) fn word(verdict: &Value) -> &str {
    verdict.get("verdict").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the exit status: 0 accepted, 1 mismatch, 3 a matter of time, 4 a matter of the header's form.
pub(crate) fn exit_status(verdict: &Value) -> u8 {
    match word(verdict) {
        "accepted" => 0,
        "mismatch" => 1,
        "too_old" | "too_new" => 3,
        _ => 4,
    }
}

fn malformed(reason: MalformedReason) -> Value {
    use MalformedReason as F;
    match reason {
        F::TooLong { len, .. } => json!({ "verdict": "too_long", "length": len }),
        F::TooManyParts => named("too_many_parts"),
        F::NotPair { part, .. } => at_part("not_pair", part),
        F::Space { part, .. } => at_part("blank", part),
        F::NotPrintable { part, .. } => at_part("not_printable", part),
        F::NoTimestamp => named("no_timestamp"),
        F::TwoTimestamps { part, .. } => at_part("two_timestamps", part),
        F::Timestamp { part, .. } => at_part("timestamp", part),
        F::NoDigest => named("no_digest"),
        F::DigestLength { part, len, .. } => {
            json!({ "verdict": "digest_length", "part": part, "length": len })
        }
        F::DigestCharacter { part, at, .. } => {
            json!({ "verdict": "digest_character", "part": part, "at": at })
        }
        _ => named("refused"),
    }
}

fn named(verdict: &str) -> Value {
    json!({ "verdict": verdict })
}

fn at_part(verdict: &str, part: usize) -> Value {
    json!({ "verdict": verdict, "part": part })
}
