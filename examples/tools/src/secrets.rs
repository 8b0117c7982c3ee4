//! Signing secrets as a host gets them: from a file or from the environment.
//!
//! Several of them, newest first, each on a line of its own: while one replaces another, both are
//! in use. Nothing is trimmed but the line ends, for a secret that needs trimming is not the secret.

use std::env::VarError;
use std::fs;

use call_assistant::webhook::explain::Evidence;
use call_assistant::webhook::{DeliveryHeaders, SigningSecret, Verifier};

use host::flags::Flags;

/// The flag that names a file.
pub const FILE: &str = "--secret-file";

/// The flag that names an environment variable.
pub const VARIABLE: &str = "--secret-env";

/// The environment variable that is read where no flag says otherwise.
pub const DEFAULT_VARIABLE: &str = "WEBHOOK_SECRET";

/// Returns the secrets' texts from the place that the flags name, newest first.
///
/// # Errors
/// The file or variable does not exist or is empty, or both flags are given. The message names the
/// place, never the content.
pub fn texts(flags: &Flags) -> Result<Vec<String>, String> {
    let (text, place) = match (flags.text(FILE), flags.text(VARIABLE)) {
        (Some(_), Some(_)) => return Err(format!("expected {FILE} or {VARIABLE}, not both")),
        (Some(path), None) => {
            let text = fs::read_to_string(path).map_err(|error| format!("{FILE}: {error}"))?;
            (text, format!("the file of {FILE}"))
        }
        (None, name) => {
            let name = name.unwrap_or(DEFAULT_VARIABLE);
            let place = format!("the environment variable {name}");
            let text =
                variable(name).map_err(|error| format!("no signing secret: {place} {error}"))?;
            (text, place)
        }
    };
    let texts: Vec<String> = text.lines().map(str::to_owned).collect();
    if texts.is_empty() {
        return Err(format!("no signing secret: {place} is empty"));
    }
    Ok(texts)
}

/// Returns the text of an environment variable that holds a secret.
///
/// # Errors
/// What is wrong with it, never its content.
pub fn variable(name: &str) -> Result<String, &'static str> {
    std::env::var(name).map_err(|error| match error {
        VarError::NotPresent => "is not set",
        VarError::NotUnicode(_) => "is not UTF-8",
    })
}

/// Parses the texts as secrets.
///
/// # Errors
/// A text is not a signing secret: its line, and the reason.
pub fn parse(texts: &[String]) -> Result<Vec<SigningSecret>, String> {
    let parse = |(at, text): (usize, &String)| {
        let line = at.saturating_add(1);
        SigningSecret::parse(text).map_err(|error| format!("secret {at}, on line {line}: {error}"))
    };
    texts.iter().enumerate().map(parse).collect()
}

/// Creates a verifier with these secrets. `None` without a secret.
///
/// # Errors
/// As [`parse`].
pub fn verifier(texts: &[String]) -> Result<Option<Verifier>, String> {
    let mut secrets = parse(texts)?.into_iter();
    let first = secrets.next().map(Verifier::new);
    Ok(first.map(|first| secrets.fold(first, Verifier::with_secret)))
}

/// Creates the evidence to explain a mismatch: all secrets are accepted. `None` without a secret.
pub fn evidence<'a>(
    headers: DeliveryHeaders<'a>,
    body: &'a [u8],
    texts: &'a [String],
) -> Option<Evidence<'a>> {
    let (first, others) = texts.split_first()?;
    let evidence = Evidence::new(headers, body, first);
    Some(others.iter().fold(evidence, |evidence, text| evidence.with_accepted_secret(text)))
}
