//! The URLs to which webhooks may be sent.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};

use http::Uri;
use url::{Host, Url};

use super::address::{AddressError, NOT_LOOPBACK, check_public};

/// A URL to which webhooks may be sent.
///
/// ```
/// use call_assistant::webhook::sender::{EndpointUrl, EndpointUrlError};
///
/// let target = EndpointUrl::parse("https://hooks.example.com/calls")?;
/// assert!(target.check("93.184.215.14".parse().unwrap()).is_ok());
/// assert!(target.check("10.0.0.7".parse().unwrap()).is_err());
///
/// assert_eq!(EndpointUrl::parse("http://localhost:8080/"), Err(EndpointUrlError::Scheme));
/// assert!(EndpointUrl::parse_allowing_loopback("http://localhost:8080/").is_ok()); // development
/// # Ok::<(), EndpointUrlError>(())
/// ```
///
/// Checking only the URL is not enough, because a public name may resolve to a private address, or
/// to another address each time. When you connect, resolve the name and [`check`](Self::check)
/// every address. Connect to an address that passes the check, not to the name.
///
/// The check uses the host that the `url` crate reads. For example, `https://0x7f.1/` has the host
/// `127.0.0.1`. Store [`as_str`](Self::as_str), the URL that will be called, instead of the entered
/// text.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointUrl {
    url: Url,
    uri: Uri,
    loopback: bool,
}

/// The reason why the URL of an endpoint is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointUrlError {
    /// The text is not an absolute URL, or the host is missing or invalid.
    #[error("url is not an absolute https url with a valid host")]
    NotAUrl,
    /// The entered text or [`EndpointUrl::as_str`] is longer than [`EndpointUrl::MAX_LEN`] bytes. In
    /// `as_str`, each character outside ASCII has several bytes.
    #[error("url has {len} bytes, more than {max}", max = EndpointUrl::MAX_LEN)]
    #[non_exhaustive]
    TooLong {
        /// The length, in bytes.
        len: usize,
    },
    /// The scheme is not `https`.
    #[error("url is not https")]
    Scheme,
    /// The URL has a user name or password, which may be empty. User names and passwords are never
    /// sent.
    #[error("url has a user name or password")]
    UserInfo,
    /// The URL has a fragment, which is never sent.
    #[error("url has a fragment")]
    Fragment,
    /// The port is 0.
    #[error("url has port 0")]
    Port,
    /// The host is an IPv4 address that is not written as four decimal numbers, but with fewer, octal
    /// or hexadecimal numbers.
    #[error("url has an address in disguise for a host")]
    Disguised,
    /// The host is an address that is not public.
    // Not a `source`: the message says all of it.
    #[error("url has a host that is not public: {0}")]
    Address(AddressError),
    /// The host has only one label, or its last label is a local, internal or reserved name.
    #[error("url has a host that is local, internal or reserved")]
    Local,
    /// The host is not a host name. A host name has labels of letters, digits and inner hyphens. Single
    /// dots join the labels, and no dot follows the last label.
    #[error("url has a host that is not a host name")]
    HostName,
}

impl EndpointUrl {
    /// The longest URL: 2,048 bytes of the percent-encoded form, [`as_str`](Self::as_str).
    pub const MAX_LEN: usize = 2048;

    /// Parses a URL of a public host. Parse the URL at registration, and again whenever you load the
    /// URL.
    ///
    /// A later version of this crate may refuse a stored URL, because the later version knows more
    /// hosts that are not public. Do not call a refused URL. The outcome of the attempt is
    /// [`Outcome::Forbidden`](super::super::Outcome::Forbidden).
    ///
    /// # Errors
    /// [`EndpointUrlError`] is the reason why the URL is refused.
    pub fn parse(text: &str) -> Result<Self, EndpointUrlError> {
        Self::read(text, false)
    }

    /// Parses a URL of a public host or, for development, of this machine. The host of this machine is
    /// `localhost` or a loopback address, and its URL may use plain HTTP. For this host,
    /// [`check`](Self::check) accepts only loopback addresses. For any other host, `check` accepts only
    /// public addresses.
    ///
    /// # Errors
    /// [`EndpointUrlError`] is the reason why the URL is refused.
    pub fn parse_allowing_loopback(text: &str) -> Result<Self, EndpointUrlError> {
        Self::read(text, true)
    }

    fn read(text: &str, allow_loopback: bool) -> Result<Self, EndpointUrlError> {
        if text.len() > Self::MAX_LEN {
            return Err(EndpointUrlError::TooLong { len: text.len() });
        }
        let url = Url::parse(text).map_err(|_| EndpointUrlError::NotAUrl)?;
        // What is kept is parsed again, so it must fit as well.
        if url.as_str().len() > Self::MAX_LEN {
            return Err(EndpointUrlError::TooLong { len: url.as_str().len() });
        }
        let loopback = allow_loopback && url.host().is_some_and(is_loopback);
        match url.scheme() {
            "https" => {}
            "http" if loopback => {}
            _ => return Err(EndpointUrlError::Scheme),
        }
        // Looked for in the text, because the `url` crate forgets an empty one.
        if entered_authority(text).contains('@') {
            return Err(EndpointUrlError::UserInfo);
        }
        if url.fragment().is_some() {
            return Err(EndpointUrlError::Fragment);
        }
        if url.port() == Some(0) {
            return Err(EndpointUrlError::Port);
        }
        match url.host().ok_or(EndpointUrlError::NotAUrl)? {
            Host::Ipv4(address) if !is_plain(text, address) => {
                return Err(EndpointUrlError::Disguised);
            }
            _ if loopback => {}
            Host::Ipv4(address) => {
                check_public(address.into()).map_err(EndpointUrlError::Address)?
            }
            Host::Ipv6(address) => {
                check_public(address.into()).map_err(EndpointUrlError::Address)?
            }
            Host::Domain(name) => check_name(name)?,
        }
        let uri = Uri::try_from(url.as_str()).map_err(|_| EndpointUrlError::NotAUrl)?;
        Ok(Self { url, uri, loopback })
    }

    /// Checks an address to which the host name resolved. Call this method before you connect.
    ///
    /// # Errors
    /// [`AddressError`] is the reason why the address must not be called. If no address passes the
    /// check, the outcome of the attempt is [`Outcome::Forbidden`](super::super::Outcome::Forbidden).
    pub fn check(&self, address: IpAddr) -> Result<(), AddressError> {
        match self.loopback {
            true if address.is_loopback() => Ok(()),
            true => Err(NOT_LOOPBACK),
            false => check_public(address),
        }
    }

    /// Returns the normalized URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Returns the normalized URL.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the URL as a request's target.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uri
    }
}

/// Shows only the scheme, host and port, because path and query may contain a customer's token.
impl fmt::Debug for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointUrl")
            .field("scheme", &self.url.scheme())
            .field("host", &self.url.host_str().unwrap_or_default())
            .field("port", &self.url.port_or_known_default().unwrap_or_default())
            .finish_non_exhaustive()
    }
}

fn is_loopback(host: Host<&str>) -> bool {
    match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// Returns the authority, between scheme and path, as it was entered. The `url` crate reads any run of
/// slashes and backslashes after the scheme as two slashes, and ignores tabs and line ends.
fn entered_authority(text: &str) -> &str {
    let after_scheme = text.split_once(':').map_or("", |(_, rest)| rest);
    let authority = after_scheme.trim_start_matches(['/', '\\', '\t', '\n', '\r']);
    authority.split(['/', '?', '#', '\\']).next().unwrap_or(authority)
}

fn is_plain(text: &str, address: Ipv4Addr) -> bool {
    let host = entered_authority(text).split(':').next();
    host.is_some_and(|host| host.parse() == Ok(address))
}

/// Checks a name that the `url` crate has converted to lowercase ASCII with IDNA.
fn check_name(name: &str) -> Result<(), EndpointUrlError> {
    let fits = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    // A dot at the end is an empty last label: the same host to DNS, but another one to
    // certificates and to the list of local names.
    if name.len() > 253 || !name.split('.').all(fits) {
        return Err(EndpointUrlError::HostName);
    }
    match name.rsplit_once('.') {
        Some((_, top)) if !LOCAL.contains(&top) => Ok(()),
        _ => Err(EndpointUrlError::Local),
    }
}

/// The top-level names without public hosts. They are IANA's special-use names, ICANN's names for
/// private use, and names that home routers, offices and clouds use.
const LOCAL: [&str; 19] = [
    "alt",
    "arpa",
    "corp",
    "domain",
    "example",
    "home",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "mail",
    "onion",
    "private",
    "test",
    "workgroup",
    "svc",
];
