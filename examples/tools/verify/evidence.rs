//! What is to be checked, as flags, files and standard input give it.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::{DeliveryHeader, DeliveryHeaders, SetupError, Verifier};

use capture::{Capture, header_lines};
use host::clock;
use host::flags::Flags;

/// Reads the delivery that the flags give.
///
/// # Errors
/// None or several of `--signature`, `--headers` and `--request`, or a file that cannot be read or
/// has no headers.
pub(crate) fn captured(flags: &Flags) -> Result<Capture, String> {
    let given = ["--signature", "--headers", "--request"].map(|flag| flags.text(flag));
    let lines = match given {
        [Some(text), None, None] => {
            let name = tools::product(flags)?.signature_header().as_str().to_owned();
            vec![(name, text.as_bytes().to_vec())]
        }
        [None, Some(path), None] => {
            let text = fs::read(path).map_err(|error| format!("--headers {path}: {error}"))?;
            let lines = header_lines(&text);
            if lines.is_empty() {
                return Err(format!("--headers {path}: no line is `Name: value`"));
            }
            lines
        }
        [None, None, Some(_)] if flags.text("--body").is_some() => {
            return Err("--body: not allowed with --request, which has the body".to_owned());
        }
        [None, None, Some(path)] => return request("--request", Path::new(path)),
        _ => return Err("expected one of --signature, --headers and --request".to_owned()),
    };
    Ok(Capture { lines, body: read_body(flags)? })
}

/// Reads the deliveries of `--known`: a captured request, or each file of a folder.
///
/// # Errors
/// A file cannot be read, or is no request.
pub(crate) fn known(flags: &Flags) -> Result<Vec<Capture>, String> {
    let Some(path) = flags.text("--known").map(Path::new) else { return Ok(Vec::new()) };
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

/// Returns what to say of a capture that is old by the clock. With `--now`, it is judged as of then.
pub(crate) fn hint(flags: &Flags, headers: &DeliveryHeaders<'_>, now: Timestamp) -> Option<String> {
    if flags.text("--now").is_some() {
        return None;
    }
    let text = headers.value(DeliveryHeader::Signature)?;
    let (_, rest) = std::str::from_utf8(text).ok()?.split_once("t=")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let at = Timestamp::from_unix(digits.parse().ok()?)?;
    let is_old = now.saturating_sub(tolerance(flags).ok()?) > at;
    is_old.then(|| format!("this was signed at {at}; to judge it as of then: --now {digits}"))
}

/// Reads the body.
///
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

/// Returns the time of the verdict.
///
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

/// Returns the tolerance of the verdict.
///
/// # Errors
/// `--tolerance` is not a number of seconds that a verifier takes.
pub(crate) fn tolerance(flags: &Flags) -> Result<Duration, String> {
    let seconds =
        flags.read("--tolerance", Verifier::TOLERANCE.as_secs(), "a number of seconds")?;
    match Duration::from_secs(seconds) {
        Duration::ZERO => Err(format!("--tolerance: {}", SetupError::NoTolerance)),
        long if long > Verifier::MAX_TOLERANCE => {
            Err(format!("--tolerance: {}", SetupError::LongTolerance))
        }
        tolerance => Ok(tolerance),
    }
}
