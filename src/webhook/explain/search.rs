//! The search: undo one thing after another, the likeliest first, until the digest is right.

use alloc::vec::Vec;
use core::time::Duration;

use super::body;
use super::evidence::Evidence;
use super::explanation::{Cause, Explanation, causes};
use super::guess::guesses;
use super::header::Reading;
use super::json;
use super::secret::{self, KeyCandidate};
use crate::Timestamp;
use crate::webhook::grammar::{MalformedReason, Signature};
use crate::webhook::headers::DeliveryHeader;
use crate::webhook::verifier;
use crate::webhook::verify_error::VerifyError;

causes! {
    MILLISECONDS "time_milliseconds": "t is in milliseconds, not in seconds";
    SIGNED_MILLISECONDS "signed_milliseconds":
        "the time was signed in milliseconds and sent in seconds";
    SIGNED_WITHOUT_TIME "signed_without_time": "the body was signed without the time";
    SIGNED_WITHOUT_PERIOD "signed_without_period":
        "time and body were signed without the period between them";
    SIGNED_WITH_ID "signed_with_id":
        "the delivery's id was signed too, as libraries for Standard Webhooks do";
    TIME_PREPENDED "body_time_prepended": "the time and a period were put in front of the body";
}
/// Each of the thousand milliseconds of a second is tried for bodies up to this length only.
const MAX_MILLISECONDS: usize = 16 * 1024;

impl Evidence<'_> {
    /// Finds the cause. This may take thousands of digests of the body.
    #[must_use]
    pub fn explain(&self, now: Timestamp) -> Explanation {
        let refused = |error| Explanation::proven(alloc::vec![Cause::refused(error)]);
        if self.headers.repeated() == Some(DeliveryHeader::Signature) {
            return refused(VerifyError::Repeated);
        }
        let Some(header) = self.headers.value(DeliveryHeader::Signature) else {
            return refused(VerifyError::Missing);
        };
        let found = Reading::new(header).and_then(|reading| Search::new(self, reading).run());
        match (found, Signature::parse(header)) {
            (Some(mut causes), Ok(signature)) => {
                if !causes.contains(&MILLISECONDS) {
                    causes.extend(window(signature.seconds, now, self.tolerance));
                }
                Explanation::proven(causes)
            }
            (Some(mut causes), Err(error)) => {
                // Another notation of the digest says more than that it is not lowercase hex.
                let is_notation = matches!(
                    error,
                    MalformedReason::DigestLength { .. } | MalformedReason::DigestCharacter { .. }
                ) && causes.iter().any(Cause::is_notation);
                if !is_notation {
                    causes.push(Cause::refused(error.into()));
                }
                Explanation::proven(causes)
            }
            // A header that is not well-formed is a fact, whatever else there is.
            (None, Err(error)) => refused(error.into()),
            (None, Ok(_)) => Explanation::guessed(guesses(self)),
        }
    }
}

/// How many keys of each secret are tried: the text as given, or whatever else may have come of it.
const AS_GIVEN: usize = 1;
const ALL: usize = usize::MAX;

struct Search<'a> {
    evidence: &'a Evidence<'a>,
    reading: Reading<'a>,
    /// For each secret, the keys that may come of it: first the one that should.
    keys: Vec<Vec<KeyCandidate>>,
}

impl<'a> Search<'a> {
    fn new(evidence: &'a Evidence<'a>, reading: Reading<'a>) -> Self {
        let keys = evidence.secrets.iter().map(|text| secret::candidates(text)).collect();
        Self { evidence, reading, keys }
    }

    fn run(&self) -> Option<Vec<Cause>> {
        let body = self.evidence.body;
        self.any_construction(body)
            .or_else(|| {
                if body.len() > Evidence::MAX_SEARCHED {
                    return None;
                }
                self.any_body(body)
                    .or_else(|| self.any_two(body))
                    .or_else(|| self.any_style(body))
                    .or_else(|| self.any_wrapped_style(body))
                    .or_else(|| self.any_millisecond(body))
            })
            // Another attempt of the same event has the right body, too: what became of this one
            // says more.
            .or_else(|| self.any_delivery())
    }

    /// The body as it is, signed at another time or in another construction, under whatever may
    /// have happened to the secret.
    fn any_construction(&self, body: &[u8]) -> Option<Vec<Cause>> {
        let t = self.reading.timestamp;
        let (time, period) = (t.as_bytes(), b".".as_slice());
        let mut messages = alloc::vec![(None, alloc::vec![time, period, body])];
        let mut add = |cause, message| messages.push((Some(cause), message));
        if let Some(seconds) = t.get(..t.len().saturating_sub(3)).filter(|text| text.len() > 8) {
            add(MILLISECONDS, alloc::vec![seconds.as_bytes(), period, body]);
        }
        add(SIGNED_MILLISECONDS, alloc::vec![time, b"000.", body]);
        if body.strip_prefix(time).is_some_and(|rest| rest.starts_with(period)) {
            add(TIME_PREPENDED, alloc::vec![body]);
        }
        add(SIGNED_WITHOUT_TIME, alloc::vec![body]);
        add(SIGNED_WITHOUT_PERIOD, alloc::vec![time, body]);
        let id = self.evidence.headers.value(DeliveryHeader::Delivery).unwrap_or_default();
        add(SIGNED_WITH_ID, alloc::vec![id, period, time, period, body]);
        messages.into_iter().find_map(|(cause, message)| {
            Some(cause.into_iter().chain(self.sign(&message, ALL)?).collect())
        })
    }

    /// One change of the body, undone.
    fn any_body(&self, body: &[u8]) -> Option<Vec<Cause>> {
        body::candidates(body)
            .find_map(|changed| Some(after(changed.cause, self.signed(&changed.signed)?)))
    }

    /// A change of the body together with one of the secret, or with another of the body.
    fn any_two(&self, body: &[u8]) -> Option<Vec<Cause>> {
        let time = self.reading.timestamp.as_bytes();
        body::candidates(body).find_map(|changed| {
            let causes = self
                .sign(&[time, b".", &changed.signed], ALL)
                .or_else(|| self.any_body(&changed.signed))?;
            Some(after(changed.cause, causes))
        })
    }

    /// The same JSON in another style.
    fn any_style(&self, body: &[u8]) -> Option<Vec<Cause>> {
        let (cause, causes) = json::find_style(body, |text| self.signed(text))?;
        Some(after(cause, causes))
    }

    /// The same JSON in another style, of a body that was wrapped or written in another charset.
    fn any_wrapped_style(&self, body: &[u8]) -> Option<Vec<Cause>> {
        body::candidates(body)
            .filter(|changed| changed.is_encoding)
            .find_map(|changed| Some(after(changed.cause, self.any_style(&changed.signed)?)))
    }

    /// A sender that signs its clock's milliseconds and sends its seconds.
    fn any_millisecond(&self, body: &[u8]) -> Option<Vec<Cause>> {
        if body.len() > MAX_MILLISECONDS {
            return None;
        }
        (1..1000).find_map(|milliseconds| {
            let time = alloc::format!("{}{milliseconds:03}", self.reading.timestamp);
            let causes = self.sign(&[time.as_bytes(), b".", body], AS_GIVEN)?;
            Some(after(SIGNED_MILLISECONDS, causes))
        })
    }

    /// This header over another delivery's body, or this body under another delivery's header.
    /// Another attempt of the same event is not another delivery.
    fn any_delivery(&self) -> Option<Vec<Cause>> {
        let Evidence { headers, body: own_body, deliveries, .. } = self.evidence;
        let own = headers.value(DeliveryHeader::Delivery);
        (1..).zip(deliveries).find_map(|(number, (headers, body))| {
            let same = own.is_some() && headers.value(DeliveryHeader::Delivery) == own;
            if same || body == own_body {
                return None;
            }
            let causes = self.signed(body).or_else(|| {
                let other = Reading::new(headers.value(DeliveryHeader::Signature)?)?;
                let message: [&[u8]; 3] = [other.timestamp.as_bytes(), b".", own_body];
                let signed = |key: &KeyCandidate| other.find(&key.key.digest(&message)).is_some();
                self.keys.iter().filter_map(|keys| keys.first()).any(signed).then(Vec::new)
            })?;
            let sentence = alloc::format!(
                "header and body belong to two deliveries, the other being number {number}"
            );
            Some(after(Cause::with_details("delivery_other", sentence), causes))
        })
    }

    /// These bytes at the time received, under each secret as it is.
    fn signed(&self, body: &[u8]) -> Option<Vec<Cause>> {
        self.sign(&[self.reading.timestamp.as_bytes(), b".", body], AS_GIVEN)
    }

    /// What it takes for one of the keys to have signed this. If several have, the one whose digest
    /// is written best: what verifies is genuine, whatever else is in the header.
    fn sign(&self, message: &[&[u8]], keys: usize) -> Option<Vec<Cause>> {
        let mut best: Option<(usize, Vec<Cause>)> = None;
        for (number, candidates) in self.keys.iter().enumerate() {
            let signed = candidates.iter().take(keys).find_map(|candidate| {
                Some((candidate, self.reading.find(&candidate.key.digest(message))?))
            });
            let Some((candidate, notation)) = signed else { continue };
            if best.as_ref().is_none_or(|(changes, _)| notation.len() < *changes) {
                let other = (number > 0).then(|| other_secret(number));
                let causes = other.iter().chain(&candidate.causes).chain(notation);
                best = Some((notation.len(), causes.cloned().collect()));
            }
        }
        best.map(|(_, causes)| causes)
    }
}

fn other_secret(number: usize) -> Cause {
    let sentence = alloc::format!("another of the known secrets signed it, number {number}");
    Cause::with_details("secret_other", sentence)
}

fn after(first: Cause, rest: Vec<Cause>) -> Vec<Cause> {
    core::iter::once(first).chain(rest).collect()
}

/// In seconds, the year 5138; in milliseconds, 1973.
const FIRST_MILLISECONDS: u64 = 100_000_000_000;

/// What is wrong with the time of a signature that is right.
fn window(seconds: u64, now: Timestamp, tolerance: Duration) -> Option<Cause> {
    let judge = |seconds| verifier::age(seconds, now, tolerance);
    let error = judge(seconds).err()?;
    // A time that is right once it is taken for milliseconds is nothing else, nor is one that in
    // seconds is thousands of years from now.
    let milliseconds = seconds >= FIRST_MILLISECONDS || judge(seconds / 1000).is_ok();
    Some(match milliseconds {
        true => MILLISECONDS,
        false => Cause::refused(error),
    })
}
