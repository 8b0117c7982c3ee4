//! What may have happened to the secret, at either end.

use alloc::vec::Vec;

use hmac::digest::zeroize::Zeroize;

use super::base64;
use super::explanation::{Cause, causes};
use crate::mac::MacKey;
use crate::webhook::secret::{SecretError, SigningSecret};

causes! {
    SPACE "secret_space": "the secret given has spaces or line ends around it";
    QUOTES "secret_quotes": "the secret given is in quotes";
    LABEL "secret_label": "the secret given has text before its prefix whsec_";
    PREFIX_MISSING "secret_prefix_missing": "the secret given lacks its prefix whsec_";
    PREFIX_DROPPED "signer_prefix_dropped": "the signer drops the secret's prefix whsec_";
    BASE64_DECODED "signer_base64_decoded":
        "the signer base64-decodes the secret, as libraries for Standard Webhooks do";
    LINE_END "signer_line_end": "the signer's secret ends in a line end";
    SIGNER_QUOTES "signer_quotes": "the signer's secret is in quotes";
}

/// A key that may have signed, and how it comes from the text given.
pub(super) struct KeyCandidate {
    pub(super) key: MacKey,
    pub(super) causes: Vec<Cause>,
}

impl KeyCandidate {
    /// Takes a key's bytes, and wipes them.
    fn new(mut bytes: Vec<u8>, causes: &[Cause]) -> Self {
        let key = MacKey::new(&bytes);
        bytes.as_mut_slice().zeroize();
        Self { key, causes: causes.into() }
    }
}

/// The keys that may come of this text: first the text itself.
pub(super) fn candidates(given: &str) -> Vec<KeyCandidate> {
    let mut found = alloc::vec![as_given(given)];
    for (text, mut causes) in readings(given) {
        if !causes.is_empty() {
            found.push(KeyCandidate::new(text.into(), &causes));
        }
        let rest = text.strip_prefix(SigningSecret::PREFIX);
        let decoded = base64::decode(rest.unwrap_or(text).as_bytes());
        let (key, cause) = match rest {
            // Of two prefixes, the first one is too many.
            Some(rest) if rest.starts_with(SigningSecret::PREFIX) => (rest.into(), LABEL),
            Some(rest) => (rest.into(), PREFIX_DROPPED),
            None => (joined(SigningSecret::PREFIX, text, ""), PREFIX_MISSING),
        };
        let changed = [
            (Some(key), cause),
            (decoded, BASE64_DECODED),
            (Some(joined("", text, "\n")), LINE_END),
            (Some(joined("", text, "\r\n")), LINE_END),
            (Some(joined("\"", text, "\"")), SIGNER_QUOTES),
            (Some(joined("'", text, "'")), SIGNER_QUOTES),
        ];
        for (key, cause) in changed {
            let Some(key) = key else { continue };
            causes.push(cause);
            found.push(KeyCandidate::new(key, &causes));
            causes.pop();
        }
    }
    found
}

fn as_given(given: &str) -> KeyCandidate {
    let cause = match SigningSecret::parse(given) {
        Ok(_) => None,
        // To HMAC, a key is the same with zeros after it: no other candidate would be found first.
        Err(_) if given.ends_with('\0') && SigningSecret::parse(without_space(given)).is_ok() => {
            Some(SPACE)
        }
        Err(error) => Some(unusable(error)),
    };
    KeyCandidate::new(given.into(), cause.as_slice())
}

fn unusable(error: SecretError) -> Cause {
    let sentence = alloc::format!("both ends have a text that is not a secret: the {error}");
    Cause::with_details("secret_unusable", sentence)
}

/// What may not belong to a secret, and the text without it.
type Step = (Cause, fn(&str) -> &str);

/// The text as given, and without what does not belong to it.
fn readings(given: &str) -> Vec<(&str, Vec<Cause>)> {
    let mut readings = alloc::vec![(given, Vec::new())];
    let mut causes = Vec::new();
    let mut text = given;
    let steps: [Step; 5] = [
        (SPACE, without_space),
        (QUOTES, without_quotes),
        (SPACE, without_space),
        (LABEL, without_label),
        (QUOTES, without_quotes),
    ];
    for (cause, without) in steps {
        let shorter = without(text);
        if shorter.len() < text.len() {
            text = shorter;
            causes.push(cause);
            readings.push((text, causes.clone()));
        }
    }
    readings
}

fn without_space(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}')
}

fn without_quotes(text: &str) -> &str {
    text.trim_matches(['"', '\'', '`', '\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'])
}

fn without_label(text: &str) -> &str {
    text.find(SigningSecret::PREFIX).and_then(|at| text.get(at..)).unwrap_or(text)
}

fn joined(before: &str, text: &str, after: &str) -> Vec<u8> {
    [before, text, after].concat().into_bytes()
}
