//! Signing secrets as a host gets them: from a file or from the environment.
//!
//! Several of them, newest first, each on a line of its own: while one replaces another, both are
//! in use. Nothing is trimmed but the line ends, for a secret that needs trimming is not the secret.

use std::env::VarError;
use std::fs;
use std::path::PathBuf;

use call_assistant::webhook::explain::Evidence;
use call_assistant::webhook::{DeliveryHeaders, SigningSecret, Verifier};

/// The flags that name a place of secrets.
#[derive(Clone, Debug, clap::Args)]
pub struct Secrets {
    /// A file with the signing secret. During a rotation: both secrets, newest first, each on a line. Secrets are
    /// numbered from 0.
    #[arg(long, value_name = "FILE", conflicts_with = "secret_env")]
    secret_file: Option<PathBuf>,
    /// An environment variable with the same content.
    #[arg(long, value_name = "NAME", default_value = "WEBHOOK_SECRET")]
    secret_env: String,
}

impl Secrets {
    /// Returns the secrets' texts from the place that the flags name, newest first.
    ///
    /// # Errors
    /// The file or variable does not exist or is empty. The message names the place, never the content.
    pub fn texts(&self) -> Result<Vec<String>, String> {
        let (text, place) = match &self.secret_file {
            Some(path) => {
                let text = fs::read_to_string(path);
                let text = text.map_err(|error| format!("--secret-file: {error}"))?;
                (text, "the file of --secret-file".to_owned())
            }
            None => {
                let place = format!("the environment variable {}", self.secret_env);
                let text = variable(&self.secret_env)
                    .map_err(|error| format!("no signing secret: {place} {error}"))?;
                (text, place)
            }
        };
        let texts: Vec<String> = text.lines().map(str::to_owned).collect();
        if texts.is_empty() {
            return Err(format!("no signing secret: {place} is empty"));
        }
        Ok(texts)
    }
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
