//! Undoes one change after another, the likeliest first, until the digest is right.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use core::time::Duration;

use super::body;
use super::evidence::Evidence;
use super::explanation::{Cause, Explanation};
use super::guess::{changed, guesses, id};
use super::header::Reading;
use super::json;
use super::key_candidates::{self, KeyCandidate};
use crate::Timestamp;
use crate::webhook::grammar::{MalformedReason, Signature};
use crate::webhook::headers::{DeliveryHeader, DeliveryHeaders};
use crate::webhook::verifier;
use crate::webhook::verify_error::VerifyError;

const MILLISECONDS: Cause = Cause::new("time_milliseconds", "t is in milliseconds, not in seconds");
const SIGNED_MILLISECONDS: Cause =
    Cause::new("signed_milliseconds", "the time was signed in milliseconds and sent in seconds");
const SIGNED_WITHOUT_TIME: Cause =
    Cause::new("signed_without_time", "the body was signed without the time");
const SIGNED_WITHOUT_PERIOD: Cause = Cause::new(
    "signed_without_period",
    "time and body were signed without the period between them",
);
const SIGNED_WITH_ID: Cause = Cause::new(
    "signed_with_id",
    "the delivery's id was signed too, as libraries for Standard Webhooks do",
);
const PERIOD_PREPENDED: Cause =
    Cause::new("body_period_prepended", "a period was put in front of the body");
const TIME_PREPENDED: Cause =
    Cause::new("body_time_prepended", "the time and a period were put in front of the body");

/// The longest body for which each millisecond of a second is tried: 16 KiB.
const MAX_MILLISECONDS: usize = 16 * 1024;

/// The maximum work of a search: 64 times the length of the evidence.
const MAX_TIMES: usize = 64;
/// The maximum work before the search tries known deliveries: 48 times the length of the evidence.
const SEARCH_TIMES: usize = 48;
/// For the limits of the work, evidence of less than 2 MiB counts as 2 MiB.
const LEAST_GIVEN: usize = 2 * 1024 * 1024;

/// The least work of a digest: 256 bytes, even if the message is shorter.
const LEAST_WORK: usize = 256;

impl Evidence<'_> {
    /// Finds the causes of the mismatch. For `now`, pass the time at which the delivery was
    /// received. If you pass a much later time, the signature is also reported as too old. The
    /// search may compute thousands of digests: see [`Explanation::work`].
    #[must_use]
    pub fn explain(&self, now: Timestamp) -> Explanation {
        let refused = |error| Explanation::new(vec![Cause::refused(error)], true, 0);
        if self.headers.repeated() == Some(DeliveryHeader::Signature) {
            return refused(VerifyError::Repeated);
        }
        let Some(header) = self.headers.value(DeliveryHeader::Signature) else {
            return refused(VerifyError::Missing);
        };
        let search = Search::new(self, Reading::new(header));
        let Reading { around, value, timestamp, .. } = &search.reading;
        let form = Signature::parse(value).err();
        let Some(mut causes) = search.run() else {
            // A header that is not well-formed is a fact, whatever else there is.
            let facts =
                around.iter().cloned().chain(form.map(|reason| Cause::refused(reason.into())));
            let mut causes: Vec<Cause> = self
                .secrets
                .first()
                .and_then(|text| key_candidates::looks_wrong(text))
                .into_iter()
                .chain(facts)
                .collect();
            let is_fact = form.is_some() || !around.is_empty();
            if !is_fact {
                causes.extend(guesses(self));
            }
            return Explanation::new(causes, is_fact, search.work.get());
        };
        // Another notation of the digest says more than that it is not lowercase hex.
        use MalformedReason::{DigestCharacter, DigestLength};
        let is_notation = matches!(form, Some(DigestLength { .. } | DigestCharacter { .. }))
            && causes.iter().any(Cause::is_notation);
        causes.extend(around.iter().cloned());
        causes.extend(form.filter(|_| !is_notation).map(|reason| Cause::refused(reason.into())));
        let time = timestamp.parse().map(|seconds| window(seconds, now, self.tolerance));
        let more = time.into_iter().flatten().filter(|cause| !causes.contains(cause));
        causes.extend(more.collect::<Vec<_>>());
        Explanation::new(causes, true, search.work.get())
    }
}

/// Tries only one key of each secret: the text as given.
const AS_GIVEN: usize = 1;
/// Tries all keys of each secret, including the keys of a changed text.
const ALL: usize = usize::MAX;

struct Search<'a> {
    evidence: &'a Evidence<'a>,
    reading: Reading<'a>,
    /// For each secret, the keys that may have signed. The first key is the secret as given.
    keys: Vec<Vec<KeyCandidate>>,
    /// The number of bytes that were hashed and compared: at most `limit`.
    work: Cell<usize>,
    limit: Cell<usize>,
    given: usize,
}

/// One step of the search through changed bodies.
#[derive(Clone, Copy)]
struct Try {
    /// The number of changes that are undone, one after another.
    changes: usize,
    /// Whether only changes of the encoding are undone.
    only_encodings: bool,
    question: Question,
}

/// A question about a body after its changes have been undone.
#[derive(Clone, Copy)]
enum Question {
    /// Whether a secret signed the body as it is.
    AsGiven,
    /// Whether a secret signed the body, with possible changes of the secret.
    AnyKey,
    /// Whether the same JSON was signed in another style.
    Style,
    /// Whether the time was signed with its milliseconds.
    Millisecond,
}

/// The steps of the search, the likeliest first.
const TRIES: [Try; 8] = [
    Try { changes: 1, only_encodings: false, question: Question::AsGiven },
    Try { changes: 2, only_encodings: false, question: Question::AsGiven },
    Try { changes: 1, only_encodings: false, question: Question::AnyKey },
    Try { changes: 0, only_encodings: false, question: Question::Style },
    Try { changes: 1, only_encodings: true, question: Question::Style },
    Try { changes: 3, only_encodings: true, question: Question::AsGiven },
    Try { changes: 2, only_encodings: true, question: Question::Style },
    Try { changes: 0, only_encodings: false, question: Question::Millisecond },
];

/// A way to build the signed message from the time, the id and the body. The protocol's way has no
/// cause. If a way is impossible with these parts, its function returns `None`.
type Construction = (Option<Cause>, fn([&[u8]; 3]) -> Option<Vec<&[u8]>>);

const CONSTRUCTIONS: [Construction; 8] = [
    (None, |[time, _, body]| Some(vec![time, b".", body])),
    (Some(MILLISECONDS), |[time, _, body]| {
        let seconds = time.get(..time.len().checked_sub(3)?)?;
        (seconds.len() > 8).then(|| vec![seconds, b".", body])
    }),
    (Some(SIGNED_MILLISECONDS), |[time, _, body]| Some(vec![time, b"000.", body])),
    (Some(TIME_PREPENDED), |[time, _, body]| {
        body.strip_prefix(time)?.starts_with(b".").then(|| vec![body])
    }),
    (Some(SIGNED_WITHOUT_TIME), |[_, _, body]| Some(vec![body])),
    (Some(PERIOD_PREPENDED), |[time, _, body]| body.starts_with(b".").then(|| vec![time, body])),
    (Some(SIGNED_WITHOUT_PERIOD), |[time, _, body]| {
        (!body.starts_with(b".")).then(|| vec![time, body])
    }),
    (Some(SIGNED_WITH_ID), |[time, id, body]| Some(vec![id, b".", time, b".", body])),
];

impl<'a> Search<'a> {
    fn new(evidence: &'a Evidence<'a>, reading: Reading<'a>) -> Self {
        let keys = evidence.secrets.iter().map(|text| key_candidates::candidates(text)).collect();
        let header = |headers: &DeliveryHeaders<'_>| {
            headers.value(DeliveryHeader::Signature).map_or(0, <[u8]>::len)
        };
        let known = (evidence.deliveries.iter()).map(|(headers, body)| (headers, *body));
        let deliveries = known.chain([(&evidence.headers, evidence.body)]);
        let given = deliveries.map(|(headers, body)| header(headers).saturating_add(body.len()));
        let given = given.fold(0, usize::saturating_add).max(LEAST_GIVEN);
        let limit = Cell::new(given.saturating_mul(SEARCH_TIMES));
        Self { evidence, reading, keys, work: Cell::new(0), limit, given }
    }

    fn run(&self) -> Option<Vec<Cause>> {
        let body = self.evidence.body;
        if self.reading.is_empty() {
            return None;
        }
        // Another attempt of the same event has the right body, too: what became of this one says
        // more. But a search that ends early leaves work for that.
        self.any_construction(body)
            .or_else(|| (body.len() <= Evidence::MAX_SEARCHED).then(|| self.any_change(body))?)
            .or_else(|| self.any_delivery())
    }

    fn any_change(&self, body: &[u8]) -> Option<Vec<Cause>> {
        TRIES.into_iter().find_map(|step| self.undone(body, step))
    }

    fn undone(&self, body: &[u8], step: Try) -> Option<Vec<Cause>> {
        let Some(changes) = step.changes.checked_sub(1) else {
            return self.answer(step.question, body);
        };
        let left = Try { changes, ..step };
        body::candidates(body)
            .take_while(|candidate| self.can_do(candidate.signed.len()))
            .filter(|candidate| candidate.is_encoding || !step.only_encodings)
            .find_map(|it| Some(after(it.cause, self.undone(&it.signed, left)?)))
    }

    fn answer(&self, question: Question, body: &[u8]) -> Option<Vec<Cause>> {
        match question {
            Question::AsGiven => self.signed(body, AS_GIVEN),
            Question::AnyKey => self.signed(body, ALL),
            Question::Style => {
                let (cause, causes) = json::find_style(body, |text| self.signed(text, AS_GIVEN))?;
                Some(after(cause, causes))
            }
            Question::Millisecond => self.any_millisecond(body),
        }
    }

    /// Returns whether the limit allows `bytes` more bytes of work. If so, counts this work.
    fn can_do(&self, bytes: usize) -> bool {
        let work = self.work.get().saturating_add(bytes.max(LEAST_WORK));
        let is_possible = work <= self.limit.get();
        if is_possible {
            self.work.set(work);
        }
        is_possible
    }

    /// Tries the body as received, with other times and constructions, and with possible changes of
    /// the secret.
    fn any_construction(&self, body: &[u8]) -> Option<Vec<Cause>> {
        let id = self.evidence.headers.value(DeliveryHeader::Delivery).unwrap_or_default();
        let parts = [self.reading.timestamp.as_bytes(), id, body];
        // The secrets as they are first, for a long body or many secrets.
        [AS_GIVEN, ALL].into_iter().find_map(|keys| {
            CONSTRUCTIONS.into_iter().find_map(|(cause, build)| {
                let causes = self.sign(&build(parts)?, keys)?;
                Some(cause.into_iter().chain(causes).collect())
            })
        })
    }

    /// Tries each millisecond, for a sender that signs milliseconds and sends seconds.
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

    /// Tries this header with another delivery's body, and this body with another delivery's
    /// header.
    fn any_delivery(&self) -> Option<Vec<Cause>> {
        let Evidence { body: own_body, deliveries, .. } = self.evidence;
        self.limit.set(self.given.saturating_mul(MAX_TIMES));
        (1..).zip(deliveries).find_map(|(number, (headers, body))| {
            if body == own_body {
                return None;
            }
            let message: [&[u8]; 3] = [self.reading.timestamp.as_bytes(), b".", body];
            if let Some(causes) = self.sign(&message, AS_GIVEN) {
                let is_same = own_body.is_empty() || self.is_same_event(headers, body);
                let found = match is_same {
                    true => changed(own_body, body, number),
                    false => other_delivery("header", number),
                };
                return Some(after(found, causes));
            }
            let other = Reading::new(headers.value(DeliveryHeader::Signature)?);
            let message: [&[u8]; 3] = [other.timestamp.as_bytes(), b".", own_body];
            let signed = |key: &KeyCandidate| self.find(&other, key, &message).is_some();
            let is_theirs = self.keys.iter().filter_map(|keys| keys.first()).any(signed);
            (is_theirs && !self.is_same_event(headers, body))
                .then(|| vec![other_delivery("body", number)])
        })
    }

    /// Returns whether a delivery has the same event as this delivery. The delivery headers decide
    /// only if the bodies do not show the ids.
    fn is_same_event(&self, headers: &DeliveryHeaders<'_>, body: &[u8]) -> bool {
        let Evidence { headers: own_headers, body: own_body, .. } = self.evidence;
        let own = own_headers.value(DeliveryHeader::Delivery);
        let is_in = |id: &str, body: &[u8]| String::from_utf8_lossy(body).contains(id);
        let is_in_both = |id: String| id.len() > 4 && is_in(&id, own_body) && is_in(&id, body);
        let same_header = own.is_some() && headers.value(DeliveryHeader::Delivery) == own;
        if !self.can_do(own_body.len().saturating_add(body.len())) {
            return same_header;
        }
        match (id(own_body), id(body)) {
            (Some(one), Some(other)) => one == other,
            (one, other) => one.or(other).is_some_and(is_in_both) || same_header,
        }
    }

    /// Tries these bytes with the received time, and with the first `keys` keys of each secret.
    fn signed(&self, body: &[u8], keys: usize) -> Option<Vec<Cause>> {
        self.sign(&[self.reading.timestamp.as_bytes(), b".", body], keys)
    }

    /// If the header contains this message's digest, returns the causes that were undone to read
    /// the digest.
    fn find<'r>(
        &self,
        reading: &'r Reading<'_>,
        candidate: &KeyCandidate,
        message: &[&[u8]],
    ) -> Option<&'r [Cause]> {
        let len = message.iter().map(|part| part.len()).sum::<usize>();
        let work = len.saturating_add(reading.digits());
        self.can_do(work).then(|| reading.find(&candidate.key.digest(message)))?
    }

    /// If one of the keys signed this message, returns the causes: the changes of the key, and the
    /// faults in the way the digest is written. If several keys signed, chooses the digest with the
    /// fewest faults.
    fn sign(&self, message: &[&[u8]], keys: usize) -> Option<Vec<Cause>> {
        let mut best: Option<(usize, Vec<Cause>)> = None;
        for (number, candidates) in self.keys.iter().enumerate() {
            let signed = candidates.iter().take(keys).find_map(|candidate| {
                Some((candidate, self.find(&self.reading, candidate, message)?))
            });
            let Some((candidate, notation)) = signed else { continue };
            if best.as_ref().is_none_or(|(changes, _)| notation.len() < *changes) {
                // Those that the verifier accepts are not numbered, and no cause.
                let number = number.saturating_add(1).saturating_sub(self.evidence.accepted);
                let other = (number > 0).then(|| {
                    let sentence =
                        alloc::format!("another of the known secrets signed it, number {number}");
                    Cause::with_details("secret_other", sentence).with_number(number)
                });
                let causes = other.iter().chain(&candidate.causes).chain(notation);
                best = Some((notation.len(), causes.cloned().collect()));
            }
        }
        best.map(|(_, causes)| causes)
    }
}

/// Creates the cause for a header and a body that come from two deliveries. Only one of the two
/// parts is known to be genuine.
fn other_delivery(part: &str, number: usize) -> Cause {
    let sentence = alloc::format!(
        "header and body are not of one delivery: the {part} is that of known delivery number {number}"
    );
    Cause::with_details("delivery_other", sentence).with_number(number)
}

fn after(first: Cause, rest: Vec<Cause>) -> Vec<Cause> {
    core::iter::once(first).chain(rest).collect()
}

/// The smallest `t` that is read as milliseconds: 100,000,000,000. As seconds, this number is in
/// the year 5138, and as milliseconds, in the year 1973.
const FIRST_MILLISECONDS: u64 = 100_000_000_000;

/// Returns the causes that concern the time, for a signature with a correct digest.
fn window(seconds: u64, now: Timestamp, tolerance: Duration) -> Vec<Cause> {
    let judge = |seconds| verifier::age(seconds, now, tolerance).err().map(Cause::refused);
    let Some(off) = judge(seconds) else { return Vec::new() };
    // A time that in seconds is thousands of years from now is in milliseconds. A clock that was
    // never set takes any other for one, too.
    match seconds >= FIRST_MILLISECONDS {
        true => core::iter::once(MILLISECONDS).chain(judge(seconds / 1000)).collect(),
        false => vec![off],
    }
}
