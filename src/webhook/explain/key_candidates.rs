//! The changes that may have happened to the secret, at the signer or at the receiver.

use alloc::string::String;
use alloc::vec::Vec;

use hmac::digest::zeroize::Zeroize;

use super::explanation::Cause;
use super::{base64, encodings};
use crate::TextError;
use crate::secret::Secret;
use crate::secret::mac::MacKey;
use crate::webhook::signing_secret::SigningSecret;

const SPACE: Cause =
    Cause::new("secret_space", "the secret given has spaces or line ends around it");
const SPACE_INSIDE: Cause =
    Cause::new("secret_space_inside", "the secret given has a space or a line break inside");
const LITERAL_LINE_END: Cause = Cause::new(
    "secret_literal_line_end",
    r"the secret given ends in \n, written as two characters",
);
const PUNCTUATION: Cause =
    Cause::new("secret_punctuation", "the secret given has a comma, semicolon or bracket after it");
const QUOTES: Cause = Cause::new("secret_quotes", "the secret given is in quotes");
const LABEL: Cause =
    Cause::new("secret_label", "the secret given has text before its prefix whsec_");
const BASE64: Cause = Cause::new(
    "secret_base64",
    "the secret given is the base64 of the whole secret, as in a manifest of Kubernetes",
);
const PREFIX_MISSING: Cause =
    Cause::new("secret_prefix_missing", "the secret given lacks its prefix whsec_");
const PREFIX_DROPPED: Cause =
    Cause::new("signer_prefix_dropped", "the signer drops the secret's prefix whsec_");
const BASE64_DECODED: Cause = Cause::new(
    "signer_base64_decoded",
    "the signer base64-decodes the secret, as libraries for Standard Webhooks do",
);
const LINE_END: Cause = Cause::new("signer_line_end", "the signer's secret ends in a line end");
const SIGNER_QUOTES: Cause = Cause::new("signer_quotes", "the signer's secret is in quotes");
const EMPTY: Cause = Cause::new("secret_empty", "the secret given is empty");
const NOT_EXPANDED: Cause = Cause::new(
    "secret_not_expanded",
    "the secret given is the name of a variable, which was not replaced by its value",
);
const API_KEY: Cause = Cause::new("secret_api_key", "the secret given is an API key");
const SHORTENED: Cause =
    Cause::new("secret_shortened", "the secret given was shortened or masked to be shown");
const UPPERCASE: Cause = Cause::new("secret_uppercase", "the secret given was put into uppercase");
const PLACEHOLDER: Cause =
    Cause::new("secret_placeholder", "the secret given is a placeholder of some documentation");

/// A possible key, and the causes of its difference from the text given.
pub(super) struct KeyCandidate {
    pub(super) key: MacKey,
    pub(super) causes: Vec<Cause>,
}

impl KeyCandidate {
    /// Creates a candidate from a key's bytes, and wipes the bytes.
    fn new(mut bytes: Vec<u8>, causes: &[Cause]) -> Self {
        let key = MacKey::new(&bytes);
        bytes.as_mut_slice().zeroize();
        Self { key, causes: causes.into() }
    }
}

/// Returns the possible keys for this text. The first key is the text itself.
pub(super) fn candidates(given: &str) -> Vec<KeyCandidate> {
    let mut found = alloc::vec![as_given(given)];
    let mut causes = Vec::new();
    let mut secret = Secret::new(given);
    for _ in 0..=MAX_STEPS {
        let text = secret.as_str();
        if !causes.is_empty() {
            found.push(KeyCandidate::new(text.into(), &causes));
        }
        for (key, cause) in signers(text) {
            let Some(key) = key else { continue };
            causes.push(cause);
            found.push(KeyCandidate::new(key, &causes));
            causes.pop();
        }
        let step = STEPS.into_iter().find_map(|(cause, without)| Some((cause, without(text)?)));
        let Some((cause, shorter)) = step else { break };
        if !causes.contains(&cause) {
            causes.push(cause);
        }
        secret = shorter;
    }
    found
}

/// Returns the keys that a signer may derive from this secret instead of using the secret's text.
fn signers(text: &str) -> [(Option<Vec<u8>>, Cause); 6] {
    let rest = text.strip_prefix(SigningSecret::PREFIX);
    let decoded = base64::decode(rest.unwrap_or(text).as_bytes());
    let is_whole = |key: &Vec<u8>| key.starts_with(SigningSecret::PREFIX.as_bytes());
    let decoding = if decoded.as_ref().is_some_and(is_whole) { BASE64 } else { BASE64_DECODED };
    let (key, cause) = match rest {
        // Of two prefixes, the first one is too many.
        Some(rest) if rest.starts_with(SigningSecret::PREFIX) => (rest.into(), LABEL),
        Some(rest) => (rest.into(), PREFIX_DROPPED),
        None => (joined(SigningSecret::PREFIX, text, ""), PREFIX_MISSING),
    };
    [
        (Some(key), cause),
        (decoded, decoding),
        (Some(joined("", text, "\n")), LINE_END),
        (Some(joined("", text, "\r\n")), LINE_END),
        (Some(joined("\"", text, "\"")), SIGNER_QUOTES),
        (Some(joined("'", text, "'")), SIGNER_QUOTES),
    ]
}

fn as_given(given: &str) -> KeyCandidate {
    let cause = match SigningSecret::parse(given) {
        Ok(_) => None,
        // To HMAC, a key is the same with zeros after it: no other candidate would be found first.
        Err(_) if given.ends_with('\0') && SigningSecret::parse(trim(given)).is_ok() => Some(SPACE),
        Err(error) => Some(unusable(error)),
    };
    KeyCandidate::new(given.into(), cause.as_slice())
}

fn unusable(error: TextError) -> Cause {
    let sentence =
        alloc::format!("the text given signed, but is no secret, and may be guessed: the {error}");
    Cause::with_details("secret_unusable", sentence)
}

/// A fault in a secret's text, and the function that removes the fault.
type Step = (Cause, fn(&str) -> Option<Secret>);

/// The maximum number of faults that are removed from a text, one after another: 8.
const MAX_STEPS: usize = 8;

const STEPS: [Step; 7] = [
    (SPACE, |text| shorter(text, trim(text))),
    (QUOTES, |text| {
        let quotes = ['"', '\'', '`', '\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'];
        shorter(text, text.trim_matches(quotes))
    }),
    (PUNCTUATION, |text| shorter(text, text.trim_end_matches([',', ';', '}', ')', ']']))),
    (LITERAL_LINE_END, |text| shorter(text, text.trim_end_matches(r"\n").trim_end_matches(r"\r"))),
    (LABEL, |text| shorter(text, text.get(text.find(SigningSecret::PREFIX)?..)?)),
    (BASE64, |text| {
        let mut text = encodings::without_space(text.as_bytes());
        let decoded = base64::decode(&text);
        text.as_mut_slice().zeroize();
        kept(decoded?, |whole| trim(whole).starts_with(SigningSecret::PREFIX))
    }),
    (SPACE_INSIDE, |text| {
        let mut whole = String::with_capacity(text.len());
        whole.extend(text.chars().filter(|c| !is_space(*c)));
        kept(whole.into_bytes(), |whole| whole.len() < text.len())
    }),
];

fn shorter(text: &str, without: &str) -> Option<Secret> {
    (without.len() < text.len()).then(|| Secret::new(without))
}

/// If `is_it` accepts the text of the bytes, returns a copy as a secret. Always wipes `bytes`.
fn kept(mut bytes: Vec<u8>, is_it: impl Fn(&str) -> bool) -> Option<Secret> {
    let text = core::str::from_utf8(&bytes).ok();
    let secret = text.filter(|text| is_it(text)).map(Secret::new);
    bytes.as_mut_slice().zeroize();
    secret
}

fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Returns whether a character is a space, a zero-width character or a control character.
fn is_space(c: char) -> bool {
    let has_no_width = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    has_no_width || c.is_whitespace() || c.is_control()
}

fn joined(before: &str, text: &str, after: &str) -> Vec<u8> {
    [before, text, after].concat().into_bytes()
}

/// Returns the fault of a text that cannot be a secret as the service shows it. No digest proves
/// this fault.
pub(super) fn looks_wrong(given: &str) -> Option<Cause> {
    let text = trim(given);
    let prefix = text.get(..SigningSecret::PREFIX.len());
    let is_in_case = prefix == Some(SigningSecret::PREFIX);
    let has = |marks: &[&str]| {
        let windows = |mark: &str| text.as_bytes().windows(mark.len());
        marks.iter().any(|mark| windows(mark).any(|at| at.eq_ignore_ascii_case(mark.as_bytes())))
    };
    let checks = [
        (text.is_empty() || text == SigningSecret::PREFIX, EMPTY),
        (has(&["$", "{{", "process.env", "os.environ", "getenv"]), NOT_EXPANDED),
        (!is_in_case && has(&["_live_", "_test_"]), API_KEY),
        (has(&["\u{2026}", "...", "\u{2022}", "***"]), SHORTENED),
        (has(&["your", "<", "xxxx", "change", "replace", "placeholder", "example"]), PLACEHOLDER),
        (!text.contains(SigningSecret::PREFIX) && has(&[SigningSecret::PREFIX]), UPPERCASE),
    ];
    let found = checks.into_iter().find_map(|(is_so, cause)| is_so.then_some(cause));
    found.or_else(|| {
        let error = SigningSecret::parse(given).err()?;
        let sentence = alloc::format!("the secret given is not one: the {error}");
        Some(Cause::with_details("secret_invalid", sentence))
    })
}
