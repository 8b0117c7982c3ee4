//! The address that the API's paths stand behind.

use alloc::string::String;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// Where a service's API is: `https://api.example.com`, or with a port and a path of its own.
///
/// Whatever one of these holds, an address made of it is valid and means the same to every URL
/// parser: what some of them would repair or fold into something else is refused. Punycode alone is
/// not looked into: parsers that decode it refuse a host of `xn--` and nonsense.
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BaseUrl {
    text: String,
    path_at: usize,
}

impl BaseUrl {
    /// The longest address, in bytes.
    pub const MAX_LEN: usize = 2048;

    /// Reads an address. One slash at its end is dropped.
    ///
    /// `http` is for services on the same machine or behind a tunnel: a key sent over a network
    /// without encryption is anybody's.
    ///
    /// # Errors
    /// What of it cannot be, or must not be, part of a base address.
    pub fn parse(text: &str) -> Result<Self, BaseUrlError> {
        if text.len() > Self::MAX_LEN {
            return Err(BaseUrlError::TooLong { len: text.len() });
        }
        if let Some(at) = text.bytes().position(|byte| !belongs(byte)) {
            return Err(BaseUrlError::Character { at });
        }
        let (scheme, rest) = text.split_once("://").ok_or(BaseUrlError::Scheme)?;
        let scheme = match scheme {
            _ if scheme.eq_ignore_ascii_case("https") => "https",
            _ if scheme.eq_ignore_ascii_case("http") => "http",
            _ => return Err(BaseUrlError::Scheme),
        };
        if rest.contains('#') {
            return Err(BaseUrlError::Fragment);
        }
        if rest.contains('?') {
            return Err(BaseUrlError::Query);
        }
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at_checked(at).unwrap_or((rest, "")),
            None => (rest, ""),
        };
        check_authority(authority)?;
        let path = path.strip_suffix('/').unwrap_or(path);
        check_path(path)?;
        let text = alloc::format!("{scheme}://{}{path}", authority.to_ascii_lowercase());
        let path_at = text.len().saturating_sub(path.len());
        Ok(Self { text, path_at })
    }

    /// The address, without a slash at its end. Scheme and host are in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The path that all paths of the API begin with: empty, or with a slash in front.
    #[must_use]
    pub fn path(&self) -> &str {
        self.text.get(self.path_at..).unwrap_or_default()
    }

    /// What is left of a request's path behind the address's own path; `None` for a path that is
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

/// Why a text is not a base address. It never repeats the text, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BaseUrlError {
    /// It is longer than [`BaseUrl::MAX_LEN`].
    #[error("base address has {len} bytes, more than {}", BaseUrl::MAX_LEN)]
    TooLong {
        /// The length, in bytes.
        len: usize,
    },
    /// A byte has no place in an address: a blank, a line end, or text beyond ASCII, which must be
    /// percent-encoded in a path and written as Punycode in a host.
    #[error("base address has a byte at {at} that has no place in an address")]
    Character {
        /// The byte's position, from 0.
        at: usize,
    },
    /// It begins with neither `https://` nor `http://`.
    #[error("base address begins with neither https:// nor http://")]
    Scheme,
    /// It has a user name or a password. Credentials travel in a header (HTTP-4).
    #[error("base address has a user name or password in it")]
    UserInfo,
    /// The host is missing, or is not a name or an address.
    #[error("host of the base address is missing or malformed")]
    Host,
    /// The port is not a number from 1 to 65535.
    #[error("port of the base address is not from 1 to 65535")]
    Port,
    /// The path has an empty segment, one of dots, which URL parsers fold away, or broken
    /// percent-encoding.
    #[error("path of the base address has an empty segment, one of dots, or broken encoding")]
    Path,
    /// It has a query.
    #[error("base address has a query")]
    Query,
    /// It has a fragment.
    #[error("base address has a fragment")]
    Fragment,
}

/// RFC 3986's characters. A backslash, a `|` and the like are repaired by some parsers and refused
/// by others.
fn belongs(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte)
}

fn check_authority(authority: &str) -> Result<(), BaseUrlError> {
    if authority.contains('@') {
        return Err(BaseUrlError::UserInfo);
    }
    let port = if let Some(rest) = authority.strip_prefix('[') {
        let (address, port) = rest.split_once(']').ok_or(BaseUrlError::Host)?;
        Ipv6Addr::from_str(address).map_err(|_| BaseUrlError::Host)?;
        match port {
            "" => None,
            _ => Some(port.strip_prefix(':').ok_or(BaseUrlError::Host)?),
        }
    } else {
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        let label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        // What ends in a number is read as an IPv4 address, in forms that hardly look like one.
        let last = host.rsplit('.').next().unwrap_or_default();
        let digits = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits || last.starts_with("0x") || last.starts_with("0X");
        let address = !number || Ipv4Addr::from_str(host).is_ok();
        if host.len() > 253 || !host.split('.').all(label) || !address {
            return Err(BaseUrlError::Host);
        }
        port
    };
    match port {
        None => Ok(()),
        Some(port) if port.starts_with('0') || !port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(BaseUrlError::Port)
        }
        Some(port) => port.parse::<u16>().map(|_| ()).map_err(|_| BaseUrlError::Port),
    }
}

fn check_path(path: &str) -> Result<(), BaseUrlError> {
    let Some(segments) = path.strip_prefix('/') else {
        return Ok(());
    };
    for segment in segments.split('/') {
        let decoded = super::percent::decode_segment(segment).map_err(|_| BaseUrlError::Path)?;
        if segment.contains(['[', ']']) || matches!(&*decoded, "" | "." | "..") {
            return Err(BaseUrlError::Path);
        }
    }
    Ok(())
}
