//! What may have happened to the secret, at either end.

use alloc::vec::Vec;
use core::fmt;

use hmac::digest::zeroize::Zeroize;

use super::target::decode_base64;
use crate::webhook::digest::Key;
use crate::webhook::secret::{SecretError, SigningSecret};

/// How the key that signed differs from the secret's text given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretChange {
    /// The text given has blanks or line ends around it.
    Blanks,
    /// The text given stands in quotes.
    Quotes,
    /// The text given has lost its prefix, `whsec_`.
    PrefixMissing,
    /// The text given has something before `whsec_`: a variable's name, a label.
    Label,
    /// The signer has dropped the prefix, `whsec_`.
    PrefixDropped,
    /// The signer has base64-decoded what follows the prefix, as libraries for Standard Webhooks
    /// do.
    Base64Decoded,
    /// The signer's secret has a line end.
    LineEnd,
    /// The signer's secret stands in quotes.
    SignerQuotes,
}

impl fmt::Display for SecretChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blanks => "the secret given has blanks or line ends around it",
            Self::Quotes => "the secret given stands in quotes",
            Self::PrefixMissing => "the secret given has lost its prefix whsec_",
            Self::Label => "the secret given has something before its prefix whsec_",
            Self::PrefixDropped => "the signer drops the secret's prefix whsec_",
            Self::Base64Decoded => {
                "the signer base64-decodes the secret, as libraries for Standard Webhooks do"
            }
            Self::LineEnd => "the signer's secret has a line end after it",
            Self::SignerQuotes => "the signer's secret stands in quotes",
        })
    }
}

/// A key that may have signed, and how it comes from the text given.
pub(super) struct Candidate {
    pub(super) key: Key,
    pub(super) changes: Vec<SecretChange>,
    /// Why no verifier takes the text, if it is the one given.
    pub(super) unusable: Option<SecretError>,
}

/// The keys that may come of this text: first the text itself.
pub(super) fn candidates(given: &str) -> Vec<Candidate> {
    let mut found = Vec::new();
    let mut add = |bytes: &[u8], changes: &[SecretChange]| {
        let unusable = match changes {
            [] => SigningSecret::parse(given).err(),
            _ => None,
        };
        found.push(Candidate { key: Key::from_bytes(bytes), changes: changes.into(), unusable });
    };

    // To HMAC, a key is the same with zeros behind it: no other candidate would be found first.
    let padded = given.ends_with('\0') && SigningSecret::parse(without_blanks(given)).is_ok();
    add(given.as_bytes(), if padded { &[SecretChange::Blanks] } else { &[] });
    for (text, mut changes) in readings(given) {
        if !changes.is_empty() {
            add(text.as_bytes(), &changes);
        }
        let rest = match text.strip_prefix(SigningSecret::PREFIX) {
            Some(rest) => {
                // With a second prefix behind the first, it is the first that is too many.
                let twice = rest.starts_with(SigningSecret::PREFIX);
                let change = if twice { SecretChange::Label } else { SecretChange::PrefixDropped };
                changes.push(change);
                add(rest.as_bytes(), &changes);
                changes.pop();
                rest
            }
            None => {
                changes.push(SecretChange::PrefixMissing);
                joined(&[SigningSecret::PREFIX, text], |key| add(key, &changes));
                changes.pop();
                text
            }
        };
        if let Some(mut key) = decode_base64(rest.as_bytes()) {
            changes.push(SecretChange::Base64Decoded);
            add(&key, &changes);
            changes.pop();
            key.as_mut_slice().zeroize();
        }
        for (around, change) in [
            (["", "\n"], SecretChange::LineEnd),
            (["", "\r\n"], SecretChange::LineEnd),
            (["\"", "\""], SecretChange::SignerQuotes),
            (["'", "'"], SecretChange::SignerQuotes),
        ] {
            let [before, after] = around;
            changes.push(change);
            joined(&[before, text, after], |key| add(key, &changes));
            changes.pop();
        }
    }
    found
}

/// The text as given, and without what does not belong to it.
fn readings(given: &str) -> Vec<(&str, Vec<SecretChange>)> {
    let mut readings = alloc::vec![(given, Vec::new())];
    let mut changes = Vec::new();
    let mut text = given;
    let mut undo = |change, without: fn(&str) -> &str| {
        let shorter = without(text);
        if shorter.len() < text.len() {
            text = shorter;
            changes.push(change);
            readings.push((text, changes.clone()));
        }
    };
    undo(SecretChange::Blanks, without_blanks);
    undo(SecretChange::Quotes, without_quotes);
    undo(SecretChange::Blanks, without_blanks);
    undo(SecretChange::Label, without_label);
    undo(SecretChange::Quotes, without_quotes);
    readings
}

fn without_blanks(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}')
}

fn without_quotes(text: &str) -> &str {
    text.trim_matches(['"', '\'', '`', '\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'])
}

fn without_label(text: &str) -> &str {
    text.find(SigningSecret::PREFIX).and_then(|at| text.get(at..)).unwrap_or(text)
}

/// Puts a key together, and wipes it.
fn joined(parts: &[&str], with: impl FnOnce(&[u8])) {
    let mut key = parts.concat().into_bytes();
    with(&key);
    key.as_mut_slice().zeroize();
}
