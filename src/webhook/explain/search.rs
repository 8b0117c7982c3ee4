//! The search: undo one thing after another, the likeliest first, until the digest is right.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;
use core::time::Duration;

use super::body;
use super::evidence::Evidence;
use super::explanation::{Cause, Explanation, causes};
use super::guess::{changed, guesses, id};
use super::header::Reading;
use super::json;
use super::secret::{self, KeyCandidate};
use crate::Timestamp;
use crate::webhook::grammar::{MalformedReason, Signature};
use crate::webhook::headers::{DeliveryHeader, DeliveryHeaders};
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
    PERIOD_PREPENDED "body_period_prepended": "a period was put in front of the body";
    TIME_PREPENDED "body_time_prepended": "the time and a period were put in front of the body";
}
/// Each of the thousand milliseconds of a second is tried for bodies up to this length only.
const MAX_MILLISECONDS: usize = 16 * 1024;

/// How often the bytes given are hashed or compared at most, and how many count as given at least.
/// What is left of the search is then omitted.
const MAX_TIMES: usize = 64;
/// The part of it that is not kept for known deliveries.
const SEARCH_TIMES: usize = 48;
const LEAST_GIVEN: usize = 2 * 1024 * 1024;

/// What a digest costs, however short the message.
const LEAST_WORK: usize = 256;

impl Evidence<'_> {
    /// Finds the cause. This may take thousands of digests: see [`Explanation::work`].
    #[must_use]
    pub fn explain(&self, now: Timestamp) -> Explanation {
        let refused = |error| Explanation::new(alloc::vec![Cause::refused(error)], true, 0);
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
                .and_then(|text| secret::looks_wrong(text))
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

/// How many keys of each secret are tried: the text as given, or whatever else may have come of it.
const AS_GIVEN: usize = 1;
const ALL: usize = usize::MAX;

struct Search<'a> {
    evidence: &'a Evidence<'a>,
    reading: Reading<'a>,
    /// For each secret, the keys that may come of it: first the one that should.
    keys: Vec<Vec<KeyCandidate>>,
    /// How many bytes were hashed and compared, and how many may be.
    work: Cell<usize>,
    limit: Cell<usize>,
    given: usize,
}

/// What is asked of a text that may have been signed.
type Question<'q> = &'q dyn Fn(&[u8]) -> Option<Vec<Cause>>;

impl<'a> Search<'a> {
    fn new(evidence: &'a Evidence<'a>, reading: Reading<'a>) -> Self {
        let keys = evidence.secrets.iter().map(|text| secret::candidates(text)).collect();
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

    /// The body with one change after another undone, the likeliest first: how many, whether only
    /// changes of the encoding, and what is asked of the result.
    fn any_change(&self, body: &[u8]) -> Option<Vec<Cause>> {
        let as_given: Question<'_> = &|body| self.signed(body, AS_GIVEN);
        let any_key: Question<'_> = &|body| self.signed(body, ALL);
        let style: Question<'_> = &|body| {
            let (cause, causes) = json::find_style(body, as_given)?;
            Some(after(cause, causes))
        };
        let millisecond: Question<'_> = &|body| self.any_millisecond(body);
        let mut plan = [
            (1, false, as_given),
            (2, false, as_given),
            (1, false, any_key),
            (0, false, style),
            (1, true, style),
            (3, true, as_given),
            (2, true, style),
            (0, false, millisecond),
        ]
        .into_iter();
        plan.find_map(|(changes, is_encoded, ask)| self.undone(body, changes, is_encoded, ask))
    }

    fn undone(
        &self,
        body: &[u8],
        changes: usize,
        is_encoded: bool,
        ask: Question<'_>,
    ) -> Option<Vec<Cause>> {
        let Some(left) = changes.checked_sub(1) else { return ask(body) };
        body::candidates(body)
            .take_while(|candidate| self.can_do(candidate.signed.len()))
            .filter(|candidate| candidate.is_encoding || !is_encoded)
            .find_map(|it| Some(after(it.cause, self.undone(&it.signed, left, is_encoded, ask)?)))
    }

    /// Whether this much work may be done yet; if so, counts it.
    fn can_do(&self, bytes: usize) -> bool {
        let work = self.work.get().saturating_add(bytes.max(LEAST_WORK));
        let is_possible = work <= self.limit.get();
        if is_possible {
            self.work.set(work);
        }
        is_possible
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
        let is_prepended = body.starts_with(period);
        let without_period = if is_prepended { PERIOD_PREPENDED } else { SIGNED_WITHOUT_PERIOD };
        add(without_period, alloc::vec![time, body]);
        let id = self.evidence.headers.value(DeliveryHeader::Delivery).unwrap_or_default();
        add(SIGNED_WITH_ID, alloc::vec![id, period, time, period, body]);
        // The secrets as they are first, for a long body or many secrets.
        [AS_GIVEN, ALL].into_iter().find_map(|keys| {
            messages.iter().find_map(|(cause, message)| {
                Some(cause.iter().cloned().chain(self.sign(message, keys)?).collect())
            })
        })
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
                .then(|| alloc::vec![other_delivery("body", number)])
        })
    }

    /// Another attempt of the same event is not another delivery. The bodies say which event it is,
    /// also where one of them is no longer JSON; the delivery headers only where the bodies cannot.
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

    /// These bytes at the time received, under the first keys of each secret.
    fn signed(&self, body: &[u8], keys: usize) -> Option<Vec<Cause>> {
        self.sign(&[self.reading.timestamp.as_bytes(), b".", body], keys)
    }

    /// What had to be undone to read the digest of this message, if it is there.
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

    /// What it takes for one of the keys to have signed this. If several have, the one whose digest
    /// is written best: what verifies is genuine, whatever else is in the header.
    fn sign(&self, message: &[&[u8]], keys: usize) -> Option<Vec<Cause>> {
        let mut best: Option<(usize, Vec<Cause>)> = None;
        for (number, candidates) in self.keys.iter().enumerate() {
            let signed = candidates.iter().take(keys).find_map(|candidate| {
                Some((candidate, self.find(&self.reading, candidate, message)?))
            });
            let Some((candidate, notation)) = signed else { continue };
            if best.as_ref().is_none_or(|(changes, _)| notation.len() < *changes) {
                let other = (number > 0).then(|| {
                    let sentence =
                        alloc::format!("another of the known secrets signed it, number {number}");
                    Cause::with_details("secret_other", sentence)
                });
                let causes = other.iter().chain(&candidate.causes).chain(notation);
                best = Some((notation.len(), causes.cloned().collect()));
            }
        }
        best.map(|(_, causes)| causes)
    }
}

/// Only one of the two is known to be genuine: anybody can send a header again that was seen.
fn other_delivery(part: &str, number: usize) -> Cause {
    let sentence = alloc::format!(
        "header and body are not of one delivery: the {part} is that of known delivery number {number}"
    );
    Cause::with_details("delivery_other", sentence)
}

fn after(first: Cause, rest: Vec<Cause>) -> Vec<Cause> {
    core::iter::once(first).chain(rest).collect()
}

/// In seconds, the year 5138; in milliseconds, 1973.
const FIRST_MILLISECONDS: u64 = 100_000_000_000;

/// What is wrong with the time of a signature that is right.
fn window(seconds: u64, now: Timestamp, tolerance: Duration) -> Vec<Cause> {
    let judge = |seconds| verifier::age(seconds, now, tolerance).err().map(Cause::refused);
    let Some(off) = judge(seconds) else { return Vec::new() };
    // A time that in seconds is thousands of years from now is in milliseconds. A clock that was
    // never set takes any other for one, too.
    match seconds >= FIRST_MILLISECONDS {
        true => core::iter::once(MILLISECONDS).chain(judge(seconds / 1000)).collect(),
        false => alloc::vec![off],
    }
}
