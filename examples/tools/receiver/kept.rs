//! The requests that a relay has received, each a file: its head, an empty line, its body.
//!
//! A file's name is the time it was received at, in seconds with nanoseconds, and the event's id. So
//! the folder in order of names is the order received, and a file given to
//! `verify explain --request` is explained again. They contain what callers said: only their owner may
//! read them.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use call_assistant::Timestamp;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use capture::Capture;

/// A folder of requests.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    folder: PathBuf,
}

/// One request of it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) name: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Kept {
    /// Opens a folder.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub(crate) fn open(folder: &Path) -> Result<Self, String> {
        let fault = |error| format!("{}: {error}", folder.display());
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        builder.mode(0o700);
        builder.recursive(true).create(folder).map_err(fault)?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Writes a request, and returns the name of its file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn keep(
        &self,
        called: &Uri,
        headers: &HeaderMap,
        body: &[u8],
        id: &str,
        at: Timestamp,
    ) -> Result<String, String> {
        let mut text = format!("POST {called} HTTP/1.1\r\n").into_bytes();
        for (name, value) in headers {
            text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        text.extend([b"\r\n", body].concat());
        let id: String = id.chars().map(|c| if is_plain(c) { c } else { '-' }).take(80).collect();
        let (seconds, nanos) = (at.unix_seconds(), at.subsec_nanos());
        for nanos in nanos..nanos.saturating_add(1000) {
            let name = format!("{seconds}.{nanos:09}-{id}.http");
            let path = self.folder.join(&name);
            let mut options = OpenOptions::new();
            #[cfg(unix)]
            options.mode(0o600);
            match options.write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    let written = file.write_all(&text);
                    written.map_err(|error| format!("{}: {error}", path.display()))?;
                    return Ok(name);
                }
                // Another one at the same nanosecond.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        Err(format!("{}: too many requests at {at}", self.folder.display()))
    }

    /// Returns the requests with this id, or received at this time or later, in the order received.
    ///
    /// # Errors
    /// The folder or one of the files cannot be read.
    pub(crate) fn find(
        &self,
        id: Option<&str>,
        since: Option<Timestamp>,
    ) -> Result<Vec<Request>, String> {
        let fault = |error| format!("{}: {error}", self.folder.display());
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(fault)? {
            let name = entry.map_err(fault)?.file_name();
            names.extend(name.to_str().filter(|name| name.ends_with(".http")).map(str::to_owned));
        }
        let is_meant = |name: &str| {
            let (at, rest) = name.split_once('-').unwrap_or((name, ""));
            let is_id = id.is_none_or(|id| rest.strip_suffix(".http") == Some(id) || name == id);
            let is_since = since.is_none_or(|since| {
                let received = at.split_once('.').and_then(|(seconds, nanos)| {
                    Some((seconds.parse::<i64>().ok()?, nanos.parse::<u32>().ok()?))
                });
                received.is_some_and(|at| at >= (since.unix_seconds(), since.subsec_nanos()))
            });
            is_id && is_since
        };
        names.retain(|name| is_meant(name));
        names.sort();
        names.into_iter().map(|name| self.read(name)).collect()
    }

    fn read(&self, name: String) -> Result<Request, String> {
        let path = self.folder.join(&name);
        let fault = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        let bytes = fs::read(&path).map_err(|error| fault(&error))?;
        let capture = Capture::of_request(&bytes).ok_or_else(|| fault(&"not a request"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &capture.lines {
            let name = HeaderName::try_from(name.as_str()).map_err(|error| fault(&error))?;
            let value = HeaderValue::try_from(value.as_slice()).map_err(|error| fault(&error))?;
            headers.append(name, value);
        }
        Ok(Request { name, headers, body: capture.body })
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
