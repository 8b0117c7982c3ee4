//! `tests/vectors/signatures.json`: digests that this crate did not compute (SIG-1 to SIG-5, D-40
//! to D-43). `tests/vectors/README.md` describes the file.

use core::time::Duration;
use std::collections::BTreeSet;

use call_assistant::Timestamp;
use call_assistant::webhook::{DeliveryHeaders, MalformedReason, Verified, Verifier, VerifyError};
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::secret;

#[derive(Deserialize)]
struct Vectors {
    format: u32,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    secrets: Vec<String>,
    body: Option<String>,
    body_hex: Option<String>,
    signature: Vec<String>,
    now: i64,
    #[serde(default)]
    now_nanos: u32,
    tolerance: Option<u64>,
    /// The verdict, and its details.
    #[serde(flatten)]
    expected: Map<String, Value>,
}

#[test]
fn every_case_has_its_verdict_whichever_way_the_headers_come() {
    let vectors: Vectors =
        serde_json::from_str(include_str!("../../vectors/signatures.json")).unwrap();
    assert_eq!(vectors.format, 1);
    assert!(vectors.cases.len() >= 200);
    let (mut verdicts, mut names) = (BTreeSet::new(), BTreeSet::new());
    for case in &vectors.cases {
        assert!(names.insert(&case.name), "{} twice", case.name);
        verdicts.insert(case.expected["verdict"].to_string());
        check(case);
    }
    // Accepted, and every cause there is.
    assert_eq!(verdicts.len(), 18, "{verdicts:?}");
}

#[track_caller]
fn check(case: &Case) {
    let (first, others) = case.secrets.split_first().unwrap();
    let mut verifier = others
        .iter()
        .fold(Verifier::new(secret(first)), |verifier, text| verifier.with_secret(secret(text)));
    if let Some(seconds) = case.tolerance {
        verifier = verifier.with_tolerance(Duration::from_secs(seconds)).unwrap();
    }
    let body = match (&case.body, &case.body_hex) {
        (Some(text), None) => text.as_bytes().to_owned(),
        (None, Some(digits)) => hex::decode(digits).unwrap(),
        _ => panic!("{}: one body, please", case.name),
    };
    let signature: Vec<Vec<u8>> = case
        .signature
        .iter()
        .map(|text| text.chars().map(|c| u8::try_from(c).unwrap()).collect())
        .collect();
    let now = Timestamp::from_parts(case.now, case.now_nanos).unwrap();

    let headers =
        signature.iter().fold(DeliveryHeaders::new(), |headers, value| headers.signature(value));
    let verdict = verdict(verifier.verify_parts(headers, &body, now));
    assert_eq!(verdict, case.expected, "{}", case.name);

    // `HeaderValue` itself refuses most control characters.
    let values: Result<Vec<_>, _> = signature.iter().map(|v| HeaderValue::from_bytes(v)).collect();
    if let Ok(values) = values {
        let map: HeaderMap = values
            .into_iter()
            .map(|value| (http::HeaderName::from_static("x-service-signature"), value))
            .collect();
        let verdict = self::verdict(verifier.verify(&map, &body, now));
        assert_eq!(verdict, case.expected, "{}", case.name);
    }
}

fn verdict(result: Result<Verified<'_>, VerifyError>) -> Map<String, Value> {
    use MalformedReason::*;
    let verdict = match result {
        Ok(verified) => {
            let (secret, age) = (verified.secret_index(), verified.age_seconds());
            json!({ "verdict": "accepted", "secret": secret, "age": age })
        }
        Err(VerifyError::Missing) => json!({ "verdict": "missing" }),
        Err(VerifyError::Repeated) => json!({ "verdict": "repeated", "header": "signature" }),
        Err(VerifyError::Malformed(reason)) => match reason {
            TooLong { len, .. } => json!({ "verdict": "too_long", "length": len }),
            TooManyParts => json!({ "verdict": "too_many_parts" }),
            NotPair { part, .. } => json!({ "verdict": "not_pair", "part": part }),
            Space { part, .. } => json!({ "verdict": "blank", "part": part }),
            NotPrintable { part, .. } => json!({ "verdict": "not_printable", "part": part }),
            NoTimestamp => json!({ "verdict": "no_timestamp" }),
            TwoTimestamps { part, .. } => json!({ "verdict": "two_timestamps", "part": part }),
            Timestamp { part, .. } => json!({ "verdict": "timestamp", "part": part }),
            NoDigest => json!({ "verdict": "no_digest" }),
            DigestLength { part, len, .. } => {
                json!({ "verdict": "digest_length", "part": part, "length": len })
            }
            DigestCharacter { part, at, .. } => {
                json!({ "verdict": "digest_character", "part": part, "at": at })
            }
            reason => panic!("no vector can expect {reason:?}"),
        },
        Err(VerifyError::UppercaseDigest { part, .. }) => {
            json!({ "verdict": "digest_uppercase", "part": part })
        }
        Err(VerifyError::Mismatch) => json!({ "verdict": "mismatch" }),
        Err(VerifyError::TooOld { age, .. }) => {
            json!({ "verdict": "too_old", "by": age.as_secs() })
        }
        Err(VerifyError::TooNew { ahead, .. }) => {
            json!({ "verdict": "too_new", "by": ahead.as_secs() })
        }
        Err(error) => panic!("no vector can expect {error:?}"),
    };
    verdict.as_object().unwrap().clone()
}
