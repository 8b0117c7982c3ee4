//! What is kept of the request of an attempt, and the request as it is shown again.
//!
//! Whoever reads a signature that a receiver still accepts can send the request again. So no signature
//! is stored, and none is shown before it is older than the tolerance: it is computed from its time, the
//! secrets that signed, and the stored bytes.

use std::fmt;
use std::time::Duration;

use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::{Signer, SigningSecret, Verifier};
use call_assistant::{Product, Timestamp};
use http::header::{CONTENT_TYPE, USER_AGENT};
use sha2::{Digest as _, Sha256};

use crate::random;

/// What is kept of the request of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The `t` of its signature: whole seconds since 1970.
    pub t: i64,
    /// The secrets that signed it, newest first.
    pub secrets: Vec<SecretMark>,
    /// The fault that a sandbox made in it on order, if it is not as it would be shown.
    pub fault: Option<&'static str>,
}

/// The first four bytes of a digest of a secret: they tell the secrets of an endpoint apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretMark(pub [u8; 4]);

/// The request of an attempt, as far as it may be shown.
#[derive(Clone, Debug)]
pub struct ShownRequest {
    pub signed: Signed,
    /// The five headers of a delivery, in the order of the specification. The value of the signature is
    /// `None` where it is not shown.
    pub headers: Vec<(String, Option<String>)>,
    pub signature: SignatureState,
}

/// Whether a signature is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureState {
    Shown,
    /// It could be replayed, until this time.
    TooRecent(Timestamp),
    /// A secret that signed is no longer kept.
    SecretLost,
    /// A sandbox has changed the request.
    Changed,
}

impl SecretMark {
    pub fn of(secret: &SigningSecret) -> Self {
        let digest = Sha256::new().chain_update("mark:").chain_update(secret.reveal()).finalize();
        let [a, b, c, d, ..] = <[u8; 32]>::from(digest);
        Self([a, b, c, d])
    }
}

impl fmt::Display for SecretMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// Writes bytes as lowercase hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl SignatureState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::TooRecent(_) => "too_recent",
            Self::SecretLost => "secret_lost",
            Self::Changed => "changed",
        }
    }
}

impl Signed {
    /// Notes what signs a request at this time.
    pub fn new(signer: &Signer, now: Timestamp) -> Self {
        let previous = signer.previous(now).map(|(secret, _)| secret);
        let secrets =
            std::iter::once(signer.newest()).chain(previous).map(SecretMark::of).collect();
        Self { t: now.unix_seconds(), secrets, fault: None }
    }

    /// Returns the request again, with these bytes and the secrets that are kept.
    pub fn show(&self, body: &EventBody, signer: Option<&Signer>, now: Timestamp) -> ShownRequest {
        let at = Timestamp::from_unix(self.t).unwrap_or(Timestamp::MIN);
        let replayed = at.saturating_add(Verifier::TOLERANCE);
        let signed_by = signer.and_then(|kept| self.signer(kept, at, now));
        let (signature, signer) = match (self.fault, signed_by) {
            (Some(_), _) => (SignatureState::Changed, None),
            _ if now <= replayed => {
                let from = replayed.saturating_add(Duration::from_secs(1));
                (SignatureState::TooRecent(from), None)
            }
            (None, None) => (SignatureState::SecretLost, None),
            (None, Some(signer)) => (SignatureState::Shown, Some(signer)),
        };
        // What is not shown is not computed: a secret that nobody has stands for those that signed.
        let signer =
            signer.unwrap_or_else(|| Signer::new(SigningSecret::from_random(random::bytes())));
        let fields = body.signed_request(&signer, at).into_parts().0.headers;
        let product = Product::default();
        let hidden = product.signature_header();
        let names =
            [&CONTENT_TYPE, &USER_AGENT, hidden, product.event_header(), product.delivery_header()];
        let shown = |name: &http::HeaderName| {
            let value = fields.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
            let value = value.filter(|_| name != hidden || signature == SignatureState::Shown);
            (name.to_string(), value)
        };
        ShownRequest { signed: self.clone(), headers: names.map(shown).into(), signature }
    }

    /// Returns a signer with the secrets that signed, if all of them are kept.
    fn signer(&self, kept: &Signer, at: Timestamp, now: Timestamp) -> Option<Signer> {
        let previous = || kept.previous(now).map(|(secret, _)| secret);
        let find = |mark: &SecretMark| {
            let all = std::iter::once(kept.newest()).chain(previous());
            all.into_iter().find(|secret| SecretMark::of(secret) == *mark).cloned()
        };
        let mut found = self.secrets.iter().map(find);
        let newest = Signer::new(found.next()??);
        found.try_fold(newest, |signer, secret| {
            signer.with_previous(secret?, Timestamp::MAX, at).ok()
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use call_assistant::id::{AccountId, EventId};
    use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn body(now: Timestamp) -> EventBody {
        let (id, account) = (EventId::parse("evt_1").unwrap(), AccountId::parse("acct_1").unwrap());
        let version = ApiVersion::parse("2026-01-15").unwrap();
        NewEvent::new(id, account, version, Origin::voice(), now).ping("Hello.").unwrap()
    }

    fn secret(text: &str) -> SigningSecret {
        SigningSecret::parse(text).unwrap()
    }

    fn signature(shown: &ShownRequest) -> Option<&str> {
        shown.headers[2].1.as_deref()
    }

    // SIG-4, D-43, D-50: what is shown is what was sent, and nobody can replay it.
    #[test]
    fn a_signature_is_shown_once_no_receiver_accepts_it() {
        let sent_at = Timestamp::from_unix(1_767_225_600).unwrap();
        let body = body(sent_at);
        let mut signer = Signer::new(secret("whsec_first"));
        signer.rotate(secret("whsec_second"), DAY, sent_at).unwrap();
        let sent = body.signed_request(&signer, sent_at);
        let signed = Signed::new(&signer, sent_at);
        assert_eq!(signed.secrets.len(), 2);
        // Another rotation, of which the request knows nothing.
        signer.rotate(secret("whsec_third"), DAY, sent_at).unwrap();

        let from = sent_at.saturating_add(Duration::from_secs(301));
        for (seconds, is_shown) in [(0, false), (299, false), (300, false), (301, true)] {
            let now = sent_at.saturating_add(Duration::from_secs(seconds));
            let shown = signed.show(&body, Some(&signer), now);
            let state = match is_shown {
                true => SignatureState::Shown,
                false => SignatureState::TooRecent(from),
            };
            assert_eq!(shown.signature, state, "{seconds} s");
            for (at, (name, value)) in shown.headers.iter().enumerate() {
                let sent = Some(sent.headers()[name].to_str().unwrap());
                let expected = sent.filter(|_| at != 2 || is_shown);
                assert_eq!(value.as_deref(), expected, "{name} after {seconds} s");
            }
        }
        // A clock that is behind shows nothing.
        let before = sent_at.saturating_sub(DAY);
        assert_eq!(signature(&signed.show(&body, Some(&signer), before)), None);
    }

    #[test]
    fn what_cannot_be_told_is_not_shown() {
        let sent_at = Timestamp::from_unix(1_767_225_600).unwrap();
        let (body, now) = (body(sent_at), sent_at.saturating_add(DAY));
        let mut signer = Signer::new(secret("whsec_first"));
        let signed = Signed::new(&signer, sent_at);
        let faulty = Signed { fault: Some("wrong_signature"), ..signed.clone() };
        let none = Signed { secrets: Vec::new(), ..signed.clone() };
        let changed = faulty.show(&body, Some(&signer), now);
        assert_eq!((changed.signature, signature(&changed)), (SignatureState::Changed, None));
        signer.rotate(secret("whsec_second"), Duration::ZERO, now).unwrap();
        for (row, signed, kept) in [
            ("a secret that was replaced", &signed, Some(&signer)),
            ("no secret that opens", &signed, None),
            ("no secret that is known", &none, Some(&signer)),
        ] {
            let shown = signed.show(&body, kept, now);
            assert_eq!(
                (shown.signature, signature(&shown)),
                (SignatureState::SecretLost, None),
                "{row}"
            );
            assert_eq!(shown.headers[4].1.as_deref(), Some("evt_1"), "{row}");
        }
    }
}
