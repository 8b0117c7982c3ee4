//! What is to be checked, as flags, files and standard input give it.

use std::fs;
use std::io::{self, Read as _};
use std::time::Duration;

use call_assistant::Product;
use call_assistant::Timestamp;
use call_assistant::webhook::{DeliveryHeaders, Verifier};

use crate::support::clock;
use crate::support::flags::Flags;

/// Headers and body of one delivery.
pub(crate) struct Captured {
    product: Product,
    /// Names and values; without one, the flag's signature.
    lines: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Captured {
    /// # Errors
    /// Neither or both of `--signature` and `--headers`, or a file that cannot be read.
    pub(crate) fn from_flags(flags: &Flags) -> Result<Self, String> {
        let product = crate::product(flags)?;
        let lines = match (flags.text("--signature"), flags.text("--headers")) {
            (Some(text), None) => {
                let name = product.signature_header().as_str().to_owned();
                vec![(name, text.as_bytes().to_vec())]
            }
            (None, Some(path)) => {
                let text = fs::read(path).map_err(|error| format!("--headers {path}: {error}"))?;
                text.split(|byte| *byte == b'\n').filter_map(header).collect()
            }
            _ => return Err("--signature or --headers, one of them".to_owned()),
        };
        Ok(Self { product, lines, body: read_body(flags)? })
    }

    pub(crate) fn headers(&self) -> DeliveryHeaders<'_> {
        let pairs = self.lines.iter().map(|(name, value)| (name.as_str(), value));
        DeliveryHeaders::from_pairs(&self.product, pairs)
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }
}

/// A line of headers as a client sends or prints it. Lines of another form, such as the request's
/// first one, are no headers.
fn header(line: &[u8]) -> Option<(String, Vec<u8>)> {
    // With -v, curl puts a sign in front of what it sends and of what it gets.
    let line = line.strip_prefix(b"> ").or_else(|| line.strip_prefix(b"< ")).unwrap_or(line);
    let at = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at_checked(at)?;
    let name = std::str::from_utf8(name).ok().filter(|name| !name.contains(' '))?;
    // In HTTP, spaces around a value are not part of the value.
    Some((name.to_owned(), value.strip_prefix(b":")?.trim_ascii().to_vec()))
}

/// # Errors
/// The file, or standard input, cannot be read.
pub(crate) fn read_body(flags: &Flags) -> Result<Vec<u8>, String> {
    match flags.text("--body") {
        Some(path) if path != "-" => {
            fs::read(path).map_err(|error| format!("--body {path}: {error}"))
        }
        _ => {
            let mut body = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut body);
            read.map_err(|error| format!("standard input: {error}"))?;
            Ok(body)
        }
    }
}

/// # Errors
/// `--now` is neither whole seconds nor RFC 3339.
pub(crate) fn now(flags: &Flags) -> Result<Timestamp, String> {
    let Some(text) = flags.text("--now") else { return Ok(clock::now()) };
    if let Ok(seconds) = text.parse() {
        return Timestamp::from_unix(seconds)
            .ok_or_else(|| "--now: outside the years 0000 to 9999".to_owned());
    }
    text.parse().map_err(|error| format!("--now: {error}"))
}

/// # Errors
/// `--tolerance` is not a number of seconds.
pub(crate) fn tolerance(flags: &Flags) -> Result<Duration, String> {
    flags.read("--tolerance", Verifier::TOLERANCE.as_secs()).map(Duration::from_secs)
}
