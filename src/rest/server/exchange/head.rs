//! What an exchange needs to see of a request's head.

use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::rest::BaseUrl;
use crate::rest::server::KeyDigest;
use crate::rest::server::RejectionReason;

/// The head of a request, of any framework.
///
/// Only what counts is taken: an incoming `X-Request-Id` is not looked at (D-13), and neither is a
/// body.
///
/// ```
/// use call_assistant::rest::server::RequestHead;
///
/// let (parts, ()) = http::Request::get("/v1/calls?limit=5")
///     .header("authorization", "Bearer service_live_...")
///     .body(())?
///     .into_parts();
/// let head = RequestHead::from_parts(&parts);
///
/// // From a framework on another version of `http`, or on none.
/// let same = RequestHead::new("GET", "/v1/calls", Some("limit=5"))
///     .authorization(b"Bearer service_live_...");
/// assert_eq!(head, same);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestHead<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) query: Option<&'a str>,
    authorization: Authorization<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Authorization<'a> {
    Absent,
    Once(&'a [u8]),
    Repeated,
}

impl<'a> RequestHead<'a> {
    /// A head without an `Authorization` header. The path is as it came, still percent-encoded,
    /// and does not include the query.
    #[must_use]
    pub fn new(method: &'a str, path: &'a str, query: Option<&'a str>) -> Self {
        Self { method, path, query, authorization: Authorization::Absent }
    }

    /// The head of a request of the `http` crate.
    #[must_use]
    pub fn from_parts(parts: &'a Parts) -> Self {
        let head = Self::new(parts.method.as_str(), parts.uri.path(), parts.uri.query());
        let values = parts.headers.get_all(AUTHORIZATION);
        values.iter().fold(head, |head, value| head.authorization(value.as_bytes()))
    }

    /// Adds an `Authorization` header. Call it for each one there is: two are refused, and which
    /// of them was meant is not guessed.
    #[must_use]
    pub fn authorization(self, value: &'a [u8]) -> Self {
        let authorization = match self.authorization {
            Authorization::Absent => Authorization::Once(value),
            _ => Authorization::Repeated,
        };
        Self { authorization, ..self }
    }

    /// The same head as seen from this base address, for a service that is not at the root of its
    /// host. A path elsewhere becomes one that no operation has.
    #[must_use]
    pub fn below(self, base: &BaseUrl) -> Self {
        Self { path: base.below(self.path).unwrap_or_default(), ..self }
    }

    /// The digest of the credential (D-10): the scheme in any case, blanks, and then visible ASCII
    /// to the end. Whether it looks like a key of the product's is not asked: it is known or not.
    pub(super) fn credential(&self) -> Result<KeyDigest, RejectionReason> {
        let value = match self.authorization {
            Authorization::Absent => return Err(RejectionReason::NoCredential),
            Authorization::Repeated => return Err(RejectionReason::SeveralCredentials),
            Authorization::Once(value) => value,
        };
        let at = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
        let (scheme, rest) = value.split_at_checked(at).unwrap_or_default();
        if !scheme.eq_ignore_ascii_case(b"bearer") {
            return Err(RejectionReason::OtherScheme);
        }
        let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
        let credential = rest.get(blanks..).unwrap_or_default();
        if credential.is_empty() || !credential.iter().all(u8::is_ascii_graphic) {
            return Err(RejectionReason::MalformedCredential);
        }
        Ok(KeyDigest::of(credential))
    }
}

/// Without the credential.
impl core::fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RequestHead")
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
