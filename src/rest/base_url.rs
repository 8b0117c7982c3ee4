use alloc::string::{String, ToString};
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use http::Uri;

use super::percent::decode_segment;

/// Says where a service's API is: `https://api.example.com`, or with a port and a path of its own.
///
/// ```
/// use call_assistant::rest::{BaseUrl, BaseUrlError};
///
/// let base = BaseUrl::parse("https://voice.example.com:8443/public/")?;
/// assert_eq!(base.as_str(), "https://voice.example.com:8443/public");
/// assert_eq!(base.path(), "/public");
///
/// let error = BaseUrl::parse("https://user:secret@voice.example.com").unwrap_err();
/// assert_eq!(error, BaseUrlError::UserInfo);
/// # Ok::<(), BaseUrlError>(())
/// ```
///
/// A URL made of a base URL is valid and means the same to every URL parser: a text that some parsers
/// would repair is refused. (Punycode is not decoded: some parsers refuse a host of `xn--` and
/// nonsense.)
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BaseUrl {
    text: String,
    path_len: usize,
}

impl BaseUrl {
    /// The longest base URL, in bytes.
    pub const MAX_LEN: usize = 2048;

    /// Parses a base URL. One slash at its end is dropped.
    ///
    /// Use `http` only for a service on the same machine or behind a tunnel: without encryption,
    /// everybody on the way can read the key.
    ///
    /// # Errors
    /// See [`BaseUrlError`].
    pub fn parse(text: &str) -> Result<Self, BaseUrlError> {
        if text.len() > Self::MAX_LEN {
            return Err(BaseUrlError::TooLong { len: text.len() });
        }
        if let Some(at) = text.bytes().position(|byte| !is_allowed(byte)) {
            return Err(BaseUrlError::Character { at });
        }
        let (scheme, rest) = text.split_once("://").ok_or(BaseUrlError::Scheme)?;
        let scheme = scheme.to_ascii_lowercase();
        if scheme != "https" && scheme != "http" {
            return Err(BaseUrlError::Scheme);
        }
        // `Uri` drops a fragment.
        if rest.contains('#') {
            return Err(BaseUrlError::Fragment);
        }
        let uri = Uri::try_from(text).map_err(|_| BaseUrlError::Host)?;
        if uri.query().is_some() {
            return Err(BaseUrlError::Query);
        }
        let authority = uri.authority().ok_or(BaseUrlError::Host)?.as_str().to_ascii_lowercase();
        check_authority(&authority)?;
        let path = uri.path().strip_suffix('/').unwrap_or(uri.path());
        check_path(path)?;
        Ok(Self { text: alloc::format!("{scheme}://{authority}{path}"), path_len: path.len() })
    }

    /// Returns the URL, without a slash at its end. Scheme and host are in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the path that all paths of the API begin with: empty, or with a slash in front.
    #[must_use]
    #[expect(clippy::expect_used, reason = "the text ends with its path")]
    pub fn path(&self) -> &str {
        let at = self.text.len().checked_sub(self.path_len);
        at.and_then(|at| self.text.get(at..)).expect("the text ends with its path")
    }

    /// Returns what follows the base URL's own path in a request's path; `None` for a path that is
    /// elsewhere. For a service that is not at the root of its host.
    ///
    /// ```
    /// # use call_assistant::rest::BaseUrl;
    /// let base = BaseUrl::parse("https://example.com/voice")?;
    /// assert_eq!(base.below("/voice/v1/calls"), Some("/v1/calls"));
    /// assert_eq!(base.below("/voicemail/v1/calls"), None);
    /// # Ok::<(), call_assistant::rest::BaseUrlError>(())
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
    type Err = BaseUrlError;

    fn from_str(text: &str) -> Result<Self, BaseUrlError> {
        Self::parse(text)
    }
}

/// Says why a text is not a base URL. It never repeats the text, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BaseUrlError {
    /// The text is longer than [`BaseUrl::MAX_LEN`].
    #[error("base URL has {len} bytes, more than {}", BaseUrl::MAX_LEN)]
    TooLong {
        /// The length, in bytes.
        len: usize,
    },
    /// A byte is not allowed in a URL: a space, a line end, or text beyond ASCII, which must be
    /// percent-encoded in a path and written as Punycode in a host.
    #[error("base URL has a byte at {at} that is not allowed in a URL")]
    Character {
        /// The byte's position, from 0.
        at: usize,
    },
    /// The text begins with neither `https://` nor `http://`.
    #[error("base URL begins with neither https:// nor http://")]
    Scheme,
    /// There is a user name or a password. Credentials are sent in a header.
    // HTTP-4.
    #[error("base URL has a user name or password in it")]
    UserInfo,
    /// The host is missing, or is not a name or an address.
    #[error("host of the base URL is missing or malformed")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("port of the base URL is not from 1 to 65535")]
    Port,
    /// The path has an empty segment, a segment of dots, which URL parsers remove, or malformed
    /// percent-encoding.
    #[error("path of the base URL has an empty segment, one of dots, or malformed encoding")]
    Path,
    /// There is a query.
    #[error("base URL has a query")]
    Query,
    /// There is a fragment.
    #[error("base URL has a fragment")]
    Fragment,
}

/// RFC 3986's characters. A backslash, a `|` and the like are repaired by some parsers and refused
/// by others.
fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte)
}

fn check_authority(authority: &str) -> Result<(), BaseUrlError> {
    if authority.contains('@') {
        return Err(BaseUrlError::UserInfo);
    }
    let host_len = authority.rfind(']').map_or_else(
        || authority.find(':').unwrap_or(authority.len()),
        |bracket| bracket.saturating_add(1),
    );
    let (host, port) = authority.split_at_checked(host_len).ok_or(BaseUrlError::Host)?;
    let known = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => Ipv6Addr::from_str(address).is_ok(),
        None => is_name_or_ipv4(host),
    };
    if !known || !(port.is_empty() || port.starts_with(':')) {
        return Err(BaseUrlError::Host);
    }
    let is_port = |text: &str| text.parse::<u16>().is_ok_and(|n| n > 0 && n.to_string() == text);
    if port.strip_prefix(':').is_none_or(is_port) { Ok(()) } else { Err(BaseUrlError::Port) }
}

fn is_name_or_ipv4(host: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let label = |label: &str| !label.is_empty() && label.bytes().all(allowed);
    // What ends in a number is read as an IPv4 address, in forms that hardly look like one.
    let last = host.rsplit('.').next().unwrap_or(host);
    let number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    host.len() <= 253 && host.split('.').all(label) && (!number || Ipv4Addr::from_str(host).is_ok())
}

fn check_path(path: &str) -> Result<(), BaseUrlError> {
    let Some(segments) = path.strip_prefix('/') else {
        return Ok(());
    };
    for segment in segments.split('/') {
        let decoded = decode_segment(segment).map_err(|_| BaseUrlError::Path)?;
        if segment.contains(['[', ']']) || matches!(&*decoded, "" | "." | "..") {
            return Err(BaseUrlError::Path);
        }
    }
    Ok(())
}
