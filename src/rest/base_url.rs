use alloc::string::{String, ToString};
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use http::Uri;

use super::percent::decode_segment;
use crate::text::{TextError, TextReason, check_len};

/// The root URL of a service's API, such as `https://api.example.com`. The URL may have a port and a path.
///
/// ```
/// use call_assistant::TextReason;
/// use call_assistant::rest::BaseUrl;
///
/// let base = BaseUrl::parse("https://voice.example.com:8443/public/")?;
/// assert_eq!(base.as_str(), "https://voice.example.com:8443/public");
/// assert_eq!(base.path(), "/public");
///
/// let error = BaseUrl::parse("https://user:secret@voice.example.com").unwrap_err();
/// assert_eq!(error.reason(), TextReason::Form);
/// # Ok::<(), call_assistant::TextError>(())
/// ```
///
/// A URL that begins with this base is valid, and every URL parser reads the URL in the same way.
/// [`parse`](Self::parse) refuses a text that some parsers would repair. There is one exception: `parse`
/// does not decode Punycode, and therefore accepts a host with `xn--` and invalid Punycode, which some
/// parsers refuse.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BaseUrl {
    text: String,
    path_len: usize,
}

impl BaseUrl {
    /// The longest base URL: 2,048 bytes.
    pub const MAX_LEN: usize = 2048;

    /// Parses a base URL. If the URL ends in a slash, one slash is removed.
    ///
    /// Use `http` only for a service on the same machine or behind a tunnel. Without encryption,
    /// anybody on the network path can read the key.
    ///
    /// # Errors
    /// Returns an error that names the fault. The error never repeats the text, because the text may contain
    /// a password. The faults are:
    ///
    /// - a text of more than [`MAX_LEN`](Self::MAX_LEN) bytes
    /// - a byte that is not allowed in a URL (write text beyond ASCII as percent-encoding in a path, and as
    ///   Punycode in a host)
    /// - a scheme other than `https` and `http`, a user name, a password
    /// - a malformed host, port or path
    /// - a query or a fragment
    pub fn parse(text: &str) -> Result<Self, TextError> {
        check_len(WHAT, text, Self::MAX_LEN)?;
        if let Some(at) = text.bytes().position(|byte| !is_allowed(byte)) {
            let reason = TextReason::Character { at };
            return Err(TextError::new(WHAT, reason, "allowed in a URL"));
        }
        let no_scheme = TextError::new(WHAT, TextReason::Prefix, SCHEME);
        let (scheme, rest) = text.split_once("://").ok_or(no_scheme)?;
        let scheme = scheme.to_ascii_lowercase();
        if scheme != "https" && scheme != "http" {
            return Err(no_scheme);
        }
        // `Uri` drops a fragment.
        if rest.contains('#') {
            return Err(refused("has a fragment"));
        }
        let uri = Uri::try_from(text).map_err(|_| refused(HOST))?;
        if uri.query().is_some() {
            return Err(refused("has a query"));
        }
        let authority = uri.authority().ok_or(refused(HOST))?;
        let host_len = authority.host().len();
        let authority = authority.as_str().to_ascii_lowercase();
        check_authority(&authority, host_len)?;
        let path = uri.path().strip_suffix('/').unwrap_or(uri.path());
        check_path(path)?;
        Ok(Self { text: alloc::format!("{scheme}://{authority}{path}"), path_len: path.len() })
    }

    /// Returns the URL, without a slash at its end. The scheme and the host are in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the path with which all paths of the API begin. The path is empty or begins with a slash.
    #[must_use]
    #[expect(clippy::expect_used, reason = "the text ends with its path")]
    pub fn path(&self) -> &str {
        let at = self.text.len().checked_sub(self.path_len);
        at.and_then(|at| self.text.get(at..)).expect("the text ends with its path")
    }

    /// Removes the base URL's own path from the beginning of a request's path. If the request's path is
    /// outside the base, returns `None`. A service that is not at the root of its host needs this function.
    ///
    /// ```
    /// # use call_assistant::rest::BaseUrl;
    /// let base = BaseUrl::parse("https://example.com/voice")?;
    /// assert_eq!(base.below("/voice/v1/calls"), Some("/v1/calls"));
    /// assert_eq!(base.below("/voicemail/v1/calls"), None);
    /// # Ok::<(), call_assistant::TextError>(())
    /// ```
    #[must_use]
    pub fn below<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(self.path()).filter(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for BaseUrl {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        Self::parse(text)
    }
}

fn refused(form: &'static str) -> TextError {
    TextError::new(WHAT, TextReason::Form, form)
}

const WHAT: &str = "base URL";
const SCHEME: &str = "https:// or http://";
// HTTP-4: credentials are sent in a header.
const USER_INFO: &str = "has a user name or password in it";
const HOST: &str = "has a host that is missing or malformed";
const PORT: &str = "has a port that is not from 1 to 65535";
const PATH: &str = "has a path with an empty segment, one of dots, or malformed encoding";

/// Returns whether RFC 3986 allows a character.
fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte)
}

fn check_authority(authority: &str, host_len: usize) -> Result<(), TextError> {
    if authority.contains('@') {
        return Err(refused(USER_INFO));
    }
    let (host, port) = authority.split_at_checked(host_len).ok_or(refused(HOST))?;
    let known = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => Ipv6Addr::from_str(address).is_ok(),
        None => is_name_or_ipv4(host),
    };
    if !known || !(port.is_empty() || port.starts_with(':')) {
        return Err(refused(HOST));
    }
    let is_port = |text: &str| text.parse::<u16>().is_ok_and(|n| n > 0 && n.to_string() == text);
    if port.strip_prefix(':').is_none_or(is_port) { Ok(()) } else { Err(refused(PORT)) }
}

fn is_name_or_ipv4(host: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let label = |label: &str| !label.is_empty() && label.bytes().all(allowed);
    // URL parsers read a host that ends in a number as an IPv4 address, even `127.0x1`.
    let last = host.rsplit('.').next().unwrap_or(host);
    let number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    host.len() <= 253 && host.split('.').all(label) && (!number || Ipv4Addr::from_str(host).is_ok())
}

fn check_path(path: &str) -> Result<(), TextError> {
    let Some(segments) = path.strip_prefix('/') else {
        return Ok(());
    };
    for segment in segments.split('/') {
        let decoded = decode_segment(segment).map_err(|_| refused(PATH))?;
        if segment.contains(['[', ']']) || matches!(&*decoded, "" | "." | "..") {
            return Err(refused(PATH));
        }
    }
    Ok(())
}
