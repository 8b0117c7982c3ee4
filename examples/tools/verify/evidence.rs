//! What is to be checked, as flags, files and standard input give it.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use call_assistant::webhook::{DeliveryHeader, DeliveryHeaders};
use call_assistant::{Product, Timestamp};

use capture::{Capture, header_lines};
use host::clock;
use tools::ProductFlag;
use tools::secrets::Secrets;

/// The flags that say which delivery it is.
#[derive(clap::Args)]
pub(crate) struct Delivery {
    #[command(flatten)]
    place: Place,
    /// The body, byte for byte [standard input].
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    body: Option<PathBuf>,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Place {
    /// The signature header's value.
    #[arg(long, value_name = "TEXT")]
    signature: Option<String>,
    /// All headers, instead of the signature header: one line `Name: value` each.
    #[arg(long, value_name = "FILE")]
    headers: Option<PathBuf>,
    /// A captured request, instead of headers and body: head, empty line, body.
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
}

/// The flags of the secrets, the product and the time.
#[derive(clap::Args)]
pub(crate) struct Given {
    #[command(flatten)]
    pub(crate) secrets: Secrets,
    /// Seconds since 1970, or RFC 3339 [the clock].
    #[arg(long, value_name = "TIME", value_parser = tools::instant)]
    now: Option<Timestamp>,
    #[command(flatten)]
    pub(crate) product: ProductFlag,
}

impl Delivery {
    /// Reads the delivery.
    ///
    /// # Errors
    /// A file cannot be read, or has no headers.
    pub(crate) fn captured(&self, product: &Product) -> Result<Capture, String> {
        let Place { signature, headers, request: whole } = &self.place;
        if let Some(path) = whole {
            return request("--request", path);
        }
        let mut lines = Vec::new();
        if let Some(text) = signature {
            lines.push((product.signature_header().as_str().to_owned(), text.as_bytes().to_vec()));
        }
        if let Some(path) = headers {
            let shown = path.display();
            let text = fs::read(path).map_err(|error| format!("--headers {shown}: {error}"))?;
            lines = header_lines(&text);
            if lines.is_empty() {
                return Err(format!("--headers {shown}: no line is `Name: value`"));
            }
        }
        Ok(Capture { lines, body: read_body(self.body.as_deref())? })
    }
}

impl Given {
    /// Returns the time of the verdict.
    pub(crate) fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(clock::now)
    }

    /// Returns what to say of a capture that is old by the clock. With `--now`, it is judged as of then.
    pub(crate) fn hint(
        &self,
        headers: &DeliveryHeaders<'_>,
        tolerance: Duration,
        now: Timestamp,
    ) -> Option<String> {
        if self.now.is_some() {
            return None;
        }
        let text = headers.value(DeliveryHeader::Signature)?;
        let (_, rest) = std::str::from_utf8(text).ok()?.split_once("t=")?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let at = Timestamp::from_unix(digits.parse().ok()?)?;
        let is_old = now.saturating_sub(tolerance) > at;
        is_old.then(|| {
            format!("the delivery was signed at {at}; to check it at that time: --now {digits}")
        })
    }
}

/// Reads the deliveries of `--known`: a captured request, or each file of a folder.
///
/// # Errors
/// A file cannot be read, or is no request.
pub(crate) fn known(path: &Path) -> Result<Vec<Capture>, String> {
    if !path.is_dir() {
        return Ok(vec![request("--known", path)?]);
    }
    let fault = |error: io::Error| format!("--known {}: {error}", path.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(path).map_err(fault)? {
        paths.push(entry.map_err(fault)?.path());
    }
    paths.sort();
    paths.iter().filter(|path| path.is_file()).map(|path| request("--known", path)).collect()
}

fn request(flag: &str, path: &Path) -> Result<Capture, String> {
    let shown = path.display();
    let bytes = fs::read(path).map_err(|error| format!("{flag} {shown}: {error}"))?;
    Capture::of_request(&bytes)
        .ok_or_else(|| format!("{flag} {shown}: not a request: headers, an empty line, the body"))
}

/// Reads the body.
///
/// # Errors
/// The file, or standard input, cannot be read.
pub(crate) fn read_body(file: Option<&Path>) -> Result<Vec<u8>, String> {
    if let Some(path) = file.filter(|path| *path != Path::new("-")) {
        return fs::read(path).map_err(|error| format!("--body {}: {error}", path.display()));
    }
    let mut body = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut body);
    read.map_err(|error| format!("standard input: {error}"))?;
    Ok(body)
}
