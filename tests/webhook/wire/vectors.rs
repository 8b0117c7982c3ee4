//! `tests/vectors/signatures.json`: digests that this crate did not compute (SIG-1 to SIG-5, D-40
//! to D-43). `tests/vectors/README.md` describes the file.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use call_assistant::Timestamp;
use call_assistant::webhook::{DeliveryHeaders, MalformedReason, Verified, Verifier, VerifyError};
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;

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
    #[serde(flatten)]
    verdict: Verdict,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Verdict {
    verdict: String,
    secret: Option<usize>,
    age: Option<i64>,
    header: Option<String>,
    part: Option<usize>,
    length: Option<usize>,
    at: Option<usize>,
    by: Option<u64>,
}

#[test]
fn every_case_has_its_verdict_whichever_way_the_headers_come() {
    let vectors: Vectors =
        serde_json::from_str(include_str!("../../vectors/signatures.json")).unwrap();
    assert_eq!(vectors.format, 1);
    assert!(vectors.cases.len() >= 200);
    let mut verdicts = BTreeMap::<_, usize>::new();
    let mut names = BTreeSet::new();
    for case in &vectors.cases {
        assert!(names.insert(&case.name), "{} twice", case.name);
        *verdicts.entry(case.verdict.verdict.as_str()).or_default() += 1;
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
        (None, Some(digits)) => bytes(digits),
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
    assert_eq!(verdict, case.verdict, "{}", case.name);

    // `HeaderValue` itself refuses most control characters.
    let values: Result<Vec<_>, _> = signature.iter().map(|v| HeaderValue::from_bytes(v)).collect();
    if let Ok(values) = values {
        let map: HeaderMap = values
            .into_iter()
            .map(|value| (http::HeaderName::from_static("x-service-signature"), value))
            .collect();
        let verdict = self::verdict(verifier.verify(&map, &body, now));
        assert_eq!(verdict, case.verdict, "{}", case.name);
    }
}

fn verdict(result: Result<Verified<'_>, VerifyError>) -> Verdict {
    use MalformedReason::*;
    let none = Verdict {
        verdict: String::new(),
        secret: None,
        age: None,
        header: None,
        part: None,
        length: None,
        at: None,
        by: None,
    };
    let (name, verdict) = match result {
        Ok(verified) => (
            "accepted",
            Verdict {
                secret: Some(verified.secret_index()),
                age: Some(verified.age_seconds()),
                ..none
            },
        ),
        Err(VerifyError::Missing) => ("missing", none),
        Err(VerifyError::Repeated) => {
            ("repeated", Verdict { header: Some("signature".to_owned()), ..none })
        }
        Err(VerifyError::Malformed(reason)) => match reason {
            TooLong { len, .. } => ("too_long", Verdict { length: Some(len), ..none }),
            TooManyParts => ("too_many_parts", none),
            NotPair { part, .. } => ("not_pair", Verdict { part: Some(part), ..none }),
            Space { part, .. } => ("blank", Verdict { part: Some(part), ..none }),
            NotPrintable { part, .. } => ("not_printable", Verdict { part: Some(part), ..none }),
            NoTimestamp => ("no_timestamp", none),
            TwoTimestamps { part, .. } => ("two_timestamps", Verdict { part: Some(part), ..none }),
            Timestamp { part, .. } => ("timestamp", Verdict { part: Some(part), ..none }),
            NoDigest => ("no_digest", none),
            DigestLength { part, len, .. } => {
                ("digest_length", Verdict { part: Some(part), length: Some(len), ..none })
            }
            DigestCharacter { part, at, .. } => {
                ("digest_character", Verdict { part: Some(part), at: Some(at), ..none })
            }
            reason => panic!("no vector can expect {reason:?}"),
        },
        Err(VerifyError::UppercaseDigest { part, .. }) => {
            ("digest_uppercase", Verdict { part: Some(part), ..none })
        }
        Err(VerifyError::Mismatch) => ("mismatch", none),
        Err(VerifyError::TooOld { age, .. }) => {
            ("too_old", Verdict { by: Some(age.as_secs()), ..none })
        }
        Err(VerifyError::TooNew { ahead, .. }) => {
            ("too_new", Verdict { by: Some(ahead.as_secs()), ..none })
        }
        Err(error) => panic!("no vector can expect {error:?}"),
    };
    Verdict { verdict: name.to_owned(), ..verdict }
}

fn bytes(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}
