//! What the verifier says, in the words of `tests/vectors/README.md`.

use call_assistant::webhook::{MalformedReason, Verified, VerifyError};
use serde::{Deserialize, Serialize};

/// A verdict and the fields that go with it. A field that this program does not know would make a
/// case pass that says something else, so there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Verdict {
    pub(crate) verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    age: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<u64>,
}

impl Verdict {
    pub(crate) fn of(result: &Result<Verified<'_>, VerifyError>) -> Self {
        use VerifyError as E;
        match result {
            Ok(verified) => Self {
                secret: Some(verified.secret()),
                age: Some(verified.age_seconds()),
                ..named("accepted")
            },
            Err(error) => match *error {
                E::Missing => named("missing"),
                E::Repeated => Self { header: Some("signature".to_owned()), ..named("repeated") },
                E::Malformed(reason) => malformed(reason),
                E::UppercaseDigest { part } => {
                    Self { part: Some(part), ..named("digest_uppercase") }
                }
                E::Mismatch => named("mismatch"),
                E::TooOld { age, .. } => Self { by: Some(age.as_secs()), ..named("too_old") },
                E::TooNew { ahead, .. } => Self { by: Some(ahead.as_secs()), ..named("too_new") },
                // One that a later version tells apart.
                _ => named("refused"),
            },
        }
    }

    /// 0 accepted, 1 mismatch, 3 a matter of time, 4 a matter of the header's form.
    pub(crate) fn exit_status(&self) -> u8 {
        match self.verdict.as_str() {
            "accepted" => 0,
            "mismatch" => 1,
            "too_old" | "too_new" => 3,
            _ => 4,
        }
    }
}

fn malformed(reason: MalformedReason) -> Verdict {
    use MalformedReason as F;
    let at_part = |name, part| Verdict { part: Some(part), ..named(name) };
    match reason {
        F::TooLong { len } => Verdict { length: Some(len), ..named("too_long") },
        F::TooManyParts => named("too_many_parts"),
        F::NotPair { part } => at_part("not_pair", part),
        F::Space { part } => at_part("blank", part),
        F::NotPrintable { part } => at_part("not_printable", part),
        F::NoTimestamp => named("no_timestamp"),
        F::TwoTimestamps { part } => at_part("two_timestamps", part),
        F::Timestamp { part } => at_part("timestamp", part),
        F::NoDigest => named("no_digest"),
        F::DigestLength { part, len } => {
            Verdict { length: Some(len), ..at_part("digest_length", part) }
        }
        F::DigestCharacter { part, at } => {
            Verdict { at: Some(at), ..at_part("digest_character", part) }
        }
        _ => named("refused"),
    }
}

fn named(verdict: &str) -> Verdict {
    Verdict { verdict: verdict.to_owned(), ..Verdict::default() }
}
