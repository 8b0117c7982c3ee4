//! The search: undo one thing after another, the likeliest first, until the digest is right.

use alloc::vec::Vec;
use core::time::Duration;

use super::body::{self, BodyChange};
use super::cause::{Cause, TextChange};
use super::rewrite::{Json, JsonForm};
use super::secret::{self, Candidate};
use super::target::Reading;
use super::{Evidence, Explanation};
use crate::Timestamp;
use crate::json::JsonObject;
use crate::webhook::grammar::Signature;
use crate::webhook::headers::DeliveryHeader;
use crate::webhook::verifier;
use crate::webhook::verify_error::VerifyError;

/// All thousand milliseconds of a second are tried for bodies up to here only.
const MAX_MILLISECONDS: usize = 16 * 1024;

pub(super) fn explain(evidence: &Evidence<'_>, now: Timestamp) -> Explanation {
    if evidence.headers.repeated() == Some(DeliveryHeader::Signature) {
        return Explanation::proven(refused(VerifyError::Repeated));
    }
    let Some(header) = evidence.headers.value(DeliveryHeader::Signature) else {
        return Explanation::proven(refused(VerifyError::Missing));
    };
    let form = Signature::parse(header);
    let Some(reading) = Reading::of(header) else {
        return Explanation::proven(form.err().map(refused).unwrap_or_default());
    };

    let search = Search::new(evidence, reading);
    match search.run(evidence) {
        Some(mut causes) => {
            match form {
                Ok(_) if causes.contains(&Cause::Text(TextChange::Milliseconds)) => {}
                Ok(signature) => {
                    causes.extend(window(signature.seconds, now, evidence.tolerance));
                }
                // Reported where nothing more precise was found out about the text.
                Err(error) if !causes.iter().any(|cause| matches!(cause, Cause::Text(_))) => {
                    causes.push(Cause::Refused(error));
                }
                Err(_) => {}
            }
            Explanation::proven(causes)
        }
        // A header that is not well-formed is a fact, whatever else there is.
        None => match form {
            Err(error) => Explanation::proven(refused(error)),
            Ok(_) => Explanation::guessed(guesses(evidence)),
        },
    }
}

fn refused(error: VerifyError) -> Vec<Cause> {
    alloc::vec![Cause::Refused(error)]
}

struct Search<'a> {
    reading: Reading<'a>,
    /// For each secret, the keys that may come of it: first the one that should.
    keys: Vec<Vec<Candidate>>,
    /// What may have been signed as the time: first `t` itself.
    times: Vec<(Vec<u8>, Option<TextChange>)>,
}

impl<'a> Search<'a> {
    fn new(evidence: &Evidence<'a>, reading: Reading<'a>) -> Self {
        let keys = evidence.secrets.iter().map(|text| secret::candidates(text)).collect();
        let t = reading.timestamp;
        let mut times = alloc::vec![(Vec::from(t), None)];
        if let Some(seconds) = t.get(..t.len().saturating_sub(3)).filter(|rest| rest.len() > 8) {
            times.push((Vec::from(seconds), Some(TextChange::Milliseconds)));
        }
        times.push(([t.as_bytes(), b"000"].concat(), Some(TextChange::SignedMilliseconds)));
        Self { reading, keys, times }
    }

    fn run(&self, evidence: &Evidence<'_>) -> Option<Vec<Cause>> {
        let body = evidence.body;
        self.any_key(body)
            .or_else(|| self.any_construction(evidence))
            .or_else(|| {
                if body.len() > Evidence::MAX_SEARCHED {
                    return None;
                }
                let changed = body::candidates(body);
                self.any_body(&changed)
                    .or_else(|| self.any_two(&changed))
                    .or_else(|| self.any_form(body, None))
                    .or_else(|| self.any_form_of(&changed))
                    .or_else(|| self.any_millisecond(body))
            })
            // Another attempt of the same event has the right body, too: what became of this one
            // says more.
            .or_else(|| self.any_delivery(evidence))
    }

    /// The body as it is, under whatever may have happened to the secret and the time.
    fn any_key(&self, body: &[u8]) -> Option<Vec<Cause>> {
        self.times.iter().find_map(|(time, change)| {
            let causes = self.sign(&[time, b".", body], Keys::All)?;
            Some(text_first(*change, causes))
        })
    }

    /// Another construction of what is signed.
    fn any_construction(&self, evidence: &Evidence<'_>) -> Option<Vec<Cause>> {
        let body = evidence.body;
        let time = self.reading.timestamp.as_bytes();
        if let Some(signed) = body.strip_prefix(time).and_then(|rest| rest.strip_prefix(b"."))
            && let Some(causes) = self.sign(&[time, b".", signed], Keys::All)
        {
            return Some(body_first(&[BodyChange::TimePrepended], causes));
        }
        let id = evidence.headers.value(DeliveryHeader::Delivery).unwrap_or_default();
        let constructions: [(&[&[u8]], TextChange); 3] = [
            (&[body], TextChange::SignedWithoutTime),
            (&[time, body], TextChange::SignedWithoutPeriod),
            (&[id, b".", time, b".", body], TextChange::SignedWithId),
        ];
        constructions.into_iter().find_map(|(message, change)| {
            Some(text_first(Some(change), self.sign(message, Keys::All)?))
        })
    }

    /// This header over another delivery's body, or this body under another delivery's header.
    /// Another attempt of the same event is no other delivery.
    fn any_delivery(&self, evidence: &Evidence<'_>) -> Option<Vec<Cause>> {
        let own = evidence.headers.value(DeliveryHeader::Delivery);
        evidence.deliveries.iter().enumerate().find_map(|(index, (headers, body))| {
            let same = own.is_some() && headers.value(DeliveryHeader::Delivery) == own;
            if same || *body == evidence.body {
                return None;
            }
            let causes = self.plainly(body).or_else(|| {
                let other = Reading::of(headers.value(DeliveryHeader::Signature)?)?;
                let message: [&[u8]; 3] = [other.timestamp.as_bytes(), b".", evidence.body];
                let signed = |key: &Candidate| other.find(&key.key.mac(&message)).is_some();
                self.keys.iter().filter_map(|keys| keys.first()).any(signed).then(Vec::new)
            })?;
            let index = index.saturating_add(1);
            Some(core::iter::once(Cause::OtherDelivery { index }).chain(causes).collect())
        })
    }

    /// One change of the body, undone.
    fn any_body(&self, changed: &[(BodyChange, Vec<u8>)]) -> Option<Vec<Cause>> {
        changed
            .iter()
            .find_map(|(change, signed)| Some(body_first(&[*change], self.plainly(signed)?)))
    }

    /// The same JSON in another form.
    fn any_form(&self, body: &[u8], before: Option<BodyChange>) -> Option<Vec<Cause>> {
        let json = Json::parse(core::str::from_utf8(body).ok()?)?;
        JsonForm::all().find_map(|form| {
            let causes = self.plainly(json.write(form)?.as_bytes())?;
            let rewritten = BodyChange::Rewritten(form);
            Some(match before {
                Some(before) => body_first(&[before, rewritten], causes),
                None => body_first(&[rewritten], causes),
            })
        })
    }

    /// Likewise, of what was wrapped or spelt in another charset.
    fn any_form_of(&self, changed: &[(BodyChange, Vec<u8>)]) -> Option<Vec<Cause>> {
        changed.iter().find_map(|(change, signed)| match change {
            BodyChange::ByteOrderMarkAdded
            | BodyChange::ReadAsLatin1
            | BodyChange::ReadAsWindows1252
            | BodyChange::WrittenAsLatin1
            | BodyChange::WrittenAsUtf16
            | BodyChange::Quoted
            | BodyChange::Base64 => self.any_form(signed, Some(*change)),
            _ => None,
        })
    }

    /// A change of the body together with another, or with one of the secret.
    fn any_two(&self, changed: &[(BodyChange, Vec<u8>)]) -> Option<Vec<Cause>> {
        let time = self.reading.timestamp.as_bytes();
        changed.iter().find_map(|(change, signed)| {
            if let Some(causes) = self.sign(&[time, b".", signed], Keys::All) {
                return Some(body_first(&[*change], causes));
            }
            body::candidates(signed).iter().find_map(|(before, signed)| {
                Some(body_first(&[*change, *before], self.plainly(signed)?))
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
            let causes = self.sign(&[time.as_bytes(), b".", body], Keys::Given)?;
            Some(text_first(Some(TextChange::SignedMilliseconds), causes))
        })
    }

    /// These bytes at the time received, under each secret as it is.
    fn plainly(&self, body: &[u8]) -> Option<Vec<Cause>> {
        self.sign(&[self.reading.timestamp.as_bytes(), b".", body], Keys::Given)
    }

    /// What it takes for one of the keys to have signed this: if several have, the one that wrote it
    /// best, for what verifies is genuine whatever stands beside it.
    fn sign(&self, message: &[&[u8]], which: Keys) -> Option<Vec<Cause>> {
        let found = self.keys.iter().enumerate().filter_map(|(index, candidates)| {
            let count = match which {
                Keys::Given => 1,
                Keys::All => candidates.len(),
            };
            candidates.iter().take(count).find_map(|Candidate { key, changes, unusable }| {
                let text = self.reading.find(&key.mac(message))?;
                let other = (index > 0).then_some(Cause::OtherSecret { index });
                let unusable = unusable.map(Cause::NoSecret);
                let secret = changes.iter().copied().map(Cause::Secret);
                let text = text.iter().copied().map(Cause::Text);
                Some(other.into_iter().chain(unusable).chain(secret).chain(text).collect())
            })
        });
        let is_text = |cause: &&Cause| matches!(cause, Cause::Text(_));
        found.min_by_key(|causes: &Vec<Cause>| causes.iter().filter(is_text).count())
    }
}

/// In seconds, the year 5138; in milliseconds, 1973.
const MILLISECONDS: u64 = 100_000_000_000;

/// What is wrong with the time of a signature that is right.
fn window(seconds: u64, now: Timestamp, tolerance: Duration) -> Option<Cause> {
    let judge = |seconds| verifier::window(seconds, now, tolerance);
    let error = judge(seconds).err()?;
    // A time that is right once it is taken for milliseconds is nothing else, nor is one that in
    // seconds is thousands of years from now.
    let milliseconds = seconds >= MILLISECONDS || judge(seconds.checked_div(1000)?).is_ok();
    Some(match milliseconds {
        true => Cause::Text(TextChange::Milliseconds),
        false => Cause::Refused(error),
    })
}

/// Which keys of each secret are tried.
#[derive(Clone, Copy)]
enum Keys {
    /// The text as given.
    Given,
    /// And whatever else may have come of it.
    All,
}

fn text_first(change: Option<TextChange>, causes: Vec<Cause>) -> Vec<Cause> {
    change.map(Cause::Text).into_iter().chain(causes).collect()
}

fn body_first(changes: &[BodyChange], causes: Vec<Cause>) -> Vec<Cause> {
    changes.iter().copied().map(Cause::Body).chain(causes).collect()
}

/// What the body looks like, where nothing could be proven.
fn guesses(evidence: &Evidence<'_>) -> Vec<Cause> {
    let body = evidence.body;
    if body.is_empty() {
        return alloc::vec![Cause::EmptyBody];
    }
    let mut causes = Vec::new();
    if body.windows(3).any(|bytes| bytes == "\u{fffd}".as_bytes()) {
        causes.push(Cause::ReplacementCharacters);
    }
    match serde_json::from_slice::<serde::de::IgnoredAny>(body) {
        Ok(_) => {
            let object = core::str::from_utf8(body).ok().map(JsonObject::parse);
            let id = object.and_then(Result::ok).and_then(|object| object.get_str("id"));
            let claimed = evidence.headers.value(DeliveryHeader::Delivery);
            if let (Some(id), Some(claimed)) = (id, claimed)
                && id.as_bytes() != claimed
            {
                causes.push(Cause::ContradictsDeliveryHeader);
            }
        }
        Err(error) if error.is_eof() => causes.push(Cause::CutOff),
        Err(_) => causes.push(Cause::NotJson),
    }
    causes
}
