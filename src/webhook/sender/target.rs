//! Which URLs and addresses may be called.

use core::fmt;
use core::net::IpAddr;

use http::Uri;
use http::header::{self, HeaderMap, HeaderName};
use url::{Host, Url};

use super::address::{AddressError, is_public};

/// The longest URL of an endpoint, in bytes, percent-encoded as [`Target::as_str`] has it.
pub const MAX_URL_LEN: usize = 2048;

/// A URL that webhooks may be sent to.
///
/// Checking the URL is half of it: a public name may resolve to a private address, or do so the
/// second time it is asked. So whoever connects resolves the name, [`check`](Self::check)s every
/// address, and connects to one that passed, not to the name.
///
/// What is judged is the host as the `url` crate reads it, never the text: `https://0x7f.1/` is
/// `127.0.0.1`, however it is spelled. Keep [`as_str`](Self::as_str), which says plainly what will
/// be called, rather than the text that was entered.
///
/// ```
/// use call_assistant::webhook::sender::{TargetError, Reach, Target};
///
/// let target = Target::parse("https://hooks.example.com/calls", Reach::Public)?;
/// assert!(target.check("93.184.215.14".parse().unwrap()).is_ok());
/// assert!(target.check("10.0.0.7".parse().unwrap()).is_err());
///
/// assert_eq!(
///     Target::parse("http://localhost:8080/", Reach::Public).unwrap_err(),
///     TargetError::Scheme,
/// );
/// assert!(Target::parse("http://localhost:8080/", Reach::PublicOrLoopback).is_ok());
/// # Ok::<(), TargetError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
    uri: Uri,
    headers: HeaderMap,
    loopback: bool,
}

/// How far deliveries may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Public hosts over HTTPS, and nothing else.
    Public,
    /// For development: this machine too, also over plain HTTP.
    PublicOrLoopback,
}

/// Why a URL cannot be an endpoint's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// It is no absolute URL, or has no host, or one that no host can have.
    #[error("url is not an absolute https url with a valid host")]
    NotAUrl,
    /// It is longer than [`MAX_URL_LEN`] bytes, as it was entered or as it is kept: what is not
    /// ASCII takes several bytes more there.
    #[error("url has {len} bytes, more than {MAX_URL_LEN}")]
    TooLong {
        /// The length, in bytes.
        len: usize,
    },
    /// It is not `https`.
    #[error("url is not https")]
    Scheme,
    /// It has a user name or a password, which would travel to the wrong place one day.
    #[error("url has a user name or password")]
    UserInfo,
    /// It has a fragment, which is never sent.
    #[error("url has a fragment")]
    Fragment,
    /// Its port is 0.
    #[error("url has port 0")]
    Port,
    /// Its host is an address written as something else: decimal, octal, hexadecimal, with parts
    /// left out.
    #[error("url has an address in disguise for a host")]
    Disguised,
    /// Its host is an address that may not be called.
    #[error("url has a host that is not public: {0}")]
    Address(#[source] AddressError),
    /// Its host has a single label, or ends in a name that is local, internal or reserved.
    #[error("url has a host that is local, internal or reserved")]
    Local,
    /// Its host is not a name of labels of letters, digits and inner hyphens joined by single
    /// dots, none at the end.
    #[error("url has a host that is not a host name")]
    HostName,
}

impl Target {
    /// Reads a URL, at registration and again whenever it is loaded. One that was registered and is
    /// refused now, by a later version that knows more of what is not public, say, is not called:
    /// [`Outcome::Forbidden`](super::Outcome::Forbidden) is what came of the attempt.
    ///
    /// # Errors
    /// [`TargetError`] says what is wrong with it.
    pub fn parse(text: &str, reach: Reach) -> Result<Self, TargetError> {
        if text.len() > MAX_URL_LEN {
            return Err(TargetError::TooLong { len: text.len() });
        }
        let url = Url::parse(text).map_err(|_| TargetError::NotAUrl)?;
        // What is kept is read again, so that must fit as well.
        if url.as_str().len() > MAX_URL_LEN {
            return Err(TargetError::TooLong { len: url.as_str().len() });
        }
        let loopback = reach == Reach::PublicOrLoopback && url.host().is_some_and(is_loopback);
        match url.scheme() {
            "https" => {}
            "http" if loopback => {}
            _ => return Err(TargetError::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::UserInfo);
        }
        if url.fragment().is_some() {
            return Err(TargetError::Fragment);
        }
        if url.port() == Some(0) {
            return Err(TargetError::Port);
        }
        match url.host().ok_or(TargetError::NotAUrl)? {
            Host::Ipv4(address) if !is_plain(text, address) => return Err(TargetError::Disguised),
            _ if loopback => {}
            Host::Ipv4(address) => is_public(address.into()).map_err(TargetError::Address)?,
            Host::Ipv6(address) => is_public(address.into()).map_err(TargetError::Address)?,
            Host::Domain(name) => check_name(name)?,
        }
        let uri = Uri::try_from(url.as_str()).map_err(|_| TargetError::NotAUrl)?;
        Ok(Self { url, uri, headers: HeaderMap::new(), loopback })
    }

    /// Adds headers of the endpoint's own, which go with every request: a token for the receiver's
    /// gateway, say. They are marked sensitive: no log and no compression table should keep them.
    ///
    /// # Errors
    /// One of them is not the endpoint's to set: it describes the body, the connection or the
    /// sender.
    pub fn with_headers(mut self, mut headers: HeaderMap) -> Result<Self, ReservedHeader> {
        match headers.keys().find(|name| RESERVED.contains(name)) {
            Some(name) => Err(ReservedHeader(name.clone())),
            None => {
                headers.values_mut().for_each(|value| value.set_sensitive(true));
                self.headers = headers;
                Ok(self)
            }
        }
    }

    /// Checks an address that the host resolved to, when connecting.
    ///
    /// # Errors
    /// [`AddressError`] says why it may not be called. Where no address passes, the outcome of the
    /// attempt is [`Outcome::Forbidden`](super::Outcome::Forbidden).
    pub fn check(&self, address: IpAddr) -> Result<(), AddressError> {
        match self.loopback {
            true if address.is_loopback() => Ok(()),
            true => Err(AddressError::NotLoopback),
            false => is_public(address),
        }
    }

    /// The URL, normalized.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The URL.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The endpoint's own headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The URL as a request's target.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uri
    }
}

/// A header that is not the endpoint's to set.
///
/// The three headers named after the product are not among them, since the product is not known
/// here: [`Attempt::request`](super::Attempt::request) lets nothing replace those.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header {0} is reserved")]
pub struct ReservedHeader(pub HeaderName);

/// Path, query and headers may hold a token of the customer's, so they are not shown.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("scheme", &self.url.scheme())
            .field("host", &self.url.host_str().unwrap_or_default())
            .field("port", &self.url.port_or_known_default().unwrap_or_default())
            .finish_non_exhaustive()
    }
}

const RESERVED: [HeaderName; 19] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::DATE,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::RANGE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::USER_AGENT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

fn is_loopback(host: Host<&str>) -> bool {
    match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// Whether the text's own authority, its port aside, is the address in the four numbers it has.
fn is_plain(text: &str, address: core::net::Ipv4Addr) -> bool {
    let Some((_, rest)) = text.split_once("//") else { return false };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.split(':').next().unwrap_or_default();
    host.parse() == Ok(address)
}

/// `name` comes from the `url` crate: lowercase ASCII, IDNA applied.
fn check_name(name: &str) -> Result<(), TargetError> {
    let fits = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    // A dot at the end would be an empty last label: it means the same host to DNS, another to
    // certificates, and to many a table of local names.
    if name.len() > 253 || !name.split('.').all(fits) {
        return Err(TargetError::HostName);
    }
    match name.rsplit_once('.') {
        Some((_, top)) if !LOCAL.contains(&top) => Ok(()),
        _ => Err(TargetError::Local),
    }
}

/// Top-level names that are never a public host's: the registry of special-use names, ICANN's names
/// for private use, and the names home routers, offices and clouds make up.
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
