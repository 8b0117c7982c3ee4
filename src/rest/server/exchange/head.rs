//! The parts of a request's head that this module reads.

use http::Version;
use http::header::{AUTHORIZATION, HOST};
use http::request::Parts;
use http::uri::Authority;

use crate::rest::BaseUrl;
use crate::rest::server::KeyDigest;
use crate::rest::server::RejectionReason;
use crate::text::Occurs;

/// The head of a request from any framework.
///
/// ```
/// use call_assistant::rest::server::RequestHead;
///
/// let (parts, ()) = http::Request::get("/v1/calls?limit=5")
///     .header("host", "api.example.com")
///     .header("authorization", "Bearer service_live_...")
///     .body(())?
///     .into_parts();
/// let head = RequestHead::from_parts(&parts);
///
/// // From a framework on another version of `http`.
/// let same = RequestHead::new("GET", "/v1/calls", Some("limit=5"))
///     .with_host(b"api.example.com")
///     .with_authorization(b"Bearer service_live_...");
/// assert_eq!(head, same);
/// # Ok::<(), http::Error>(())
/// ```
///
/// A request of [`rest::client`](crate::rest::client) has no `Host`, because HTTP clients add this header. If
/// a test passes such a request to the service, the test must add `Host`.
///
/// The service ignores the body and all headers except `Host` and `Authorization`, including an incoming
/// `X-Request-Id`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestHead<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) query: Option<&'a str>,
    host: Occurs<&'a [u8]>,
    needs_host: bool,
    authorization: Occurs<&'a [u8]>,
}

impl<'a> RequestHead<'a> {
    /// Creates a head without headers. The path must still be percent-encoded and must not include the query.
    #[must_use]
    pub fn new(method: &'a str, path: &'a str, query: Option<&'a str>) -> Self {
        Self {
            method,
            path,
            query,
            host: Occurs::Absent,
            needs_host: true,
            authorization: Occurs::Absent,
        }
    }

    /// Reads the head of a request of the `http` crate.
    ///
    /// In HTTP/2 and later, the authority of the URI replaces a missing `Host`. HTTP/1.0 requires no
    /// authority and no `Host`.
    #[must_use]
    pub fn from_parts(parts: &'a Parts) -> Self {
        let mut head = Self::new(parts.method.as_str(), parts.uri.path(), parts.uri.query());
        for value in parts.headers.get_all(HOST) {
            head = head.with_host(value.as_bytes());
        }
        for value in parts.headers.get_all(AUTHORIZATION) {
            head = head.with_authorization(value.as_bytes());
        }
        if parts.version < Version::HTTP_11 {
            head = head.with_http_1_0();
        }
        match parts.uri.authority() {
            Some(authority) if head.host == Occurs::Absent && parts.version >= Version::HTTP_2 => {
                head.with_host(authority.as_str().as_bytes())
            }
            _ => head,
        }
    }

    /// Adds a `Host` header. Add every `Host` header, because a request with two `Host` headers is rejected.
    #[must_use]
    pub fn with_host(self, value: &'a [u8]) -> Self {
        Self { host: self.host.and(value), ..self }
    }

    /// Marks this request as HTTP/1.0, which needs no `Host` header. An existing `Host` is still checked.
    #[must_use]
    pub fn with_http_1_0(self) -> Self {
        Self { needs_host: false, ..self }
    }

    /// Adds an `Authorization` header. Add every `Authorization` header, because a request with two
    /// `Authorization` headers is rejected.
    #[must_use]
    pub fn with_authorization(self, value: &'a [u8]) -> Self {
        Self { authorization: self.authorization.and(value), ..self }
    }

    /// Removes the path of the base URL from the request's path, for a service that is not at the root of its
    /// host. A path outside the base URL is treated as an unknown path.
    #[must_use]
    pub fn with_base(self, base: &BaseUrl) -> Self {
        Self { path: base.below(self.path).unwrap_or_default(), ..self }
    }

    pub(super) fn check_host(&self) -> Result<(), RejectionReason> {
        match self.host {
            Occurs::Absent if self.needs_host => Err(RejectionReason::NoHost),
            Occurs::Absent => Ok(()),
            Occurs::Repeated => Err(RejectionReason::SeveralHosts),
            Occurs::Once(value) if is_host(value) => Ok(()),
            Occurs::Once(_) => Err(RejectionReason::MalformedHost),
        }
    }

    // D-10
    /// Computes the digest of the credential. The header contains the scheme in upper or lower case, at least
    /// one space, and visible ASCII. The credential need not have the form of a product's key, because the
    /// look-up decides.
    pub(super) fn credential(&self) -> Result<KeyDigest, RejectionReason> {
        let value = match self.authorization {
            Occurs::Absent => return Err(RejectionReason::NoCredential),
            Occurs::Repeated => return Err(RejectionReason::SeveralCredentials),
            Occurs::Once(value) => value,
        };
        let mut parts = value.splitn(2, |byte| *byte == b' ');
        let scheme = parts.next().unwrap_or_default();
        if !scheme.eq_ignore_ascii_case(b"bearer") {
            return Err(RejectionReason::OtherScheme);
        }
        let rest = parts.next().unwrap_or_default();
        let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
        let credential = rest.get(spaces..).unwrap_or_default();
        if credential.is_empty() || !credential.iter().all(u8::is_ascii_graphic) {
            return Err(RejectionReason::MalformedCredential);
        }
        Ok(KeyDigest::compute(credential))
    }
}

/// Returns whether a value is a host with an optional port. Unlike an authority, `Host` must not
/// have user info, an empty host, or a port that is no number.
fn is_host(value: &[u8]) -> bool {
    // Most hosts are a plain name, which needs no parser and no copy.
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    if !value.is_empty() && value.iter().all(plain) {
        return true;
    }
    let Ok(authority) = Authority::try_from(value) else { return false };
    let port = value.strip_prefix(authority.host().as_bytes());
    !authority.host().is_empty()
        && port.is_some_and(|port| matches!(port, b"" | b":") || authority.port_u16().is_some())
}

/// Omits the credential.
impl core::fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RequestHead")
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
