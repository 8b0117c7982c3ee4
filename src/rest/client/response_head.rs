use http::StatusCode;
use http::header::{DATE, HeaderName, RETRY_AFTER};
use http::response::Parts;

use crate::Timestamp;
use crate::rest::REQUEST_ID_HEADER;
use crate::text::Occurs;
use crate::time::http_date;

/// The relevant part of a response's head, as plain values. This type is for HTTP clients without the
/// `http` crate, or with another version of `http`. `http::response::Parts` converts into this type.
///
/// ```
/// use call_assistant::rest::GetAccount;
/// use call_assistant::rest::client::{Client, ResponseHead, RetryAfter};
///
/// let client = Client::new("https://api.example.com", "service_live_kept-where-secrets-are")?;
/// let mut head = ResponseHead::new(429);
/// head.retry_after = Some("17");
/// let error = client.read(&GetAccount, head, br#"{"error":{"code":"rate_limit_exceeded"}}"#);
/// assert_eq!(error.unwrap_err().retry_after, Some(RetryAfter::Seconds(17)));
/// # Ok::<(), call_assistant::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseHead<'a> {
    /// The status.
    pub status: u16,
    /// The header `X-Request-Id`. Each header of this struct is `None` if the header is missing or
    /// repeated.
    pub request_id: Option<&'a str>,
    /// `Retry-After`.
    pub retry_after: Option<&'a str>,
    /// The header `Date`. A `Retry-After` that is a date is measured from this instant.
    pub date: Option<&'a str>,
    /// Whether the response has headers other than these three.
    others: bool,
}

impl ResponseHead<'_> {
    /// Creates a head without headers.
    #[must_use]
    pub const fn new(status: u16) -> Self {
        Self { status, request_id: None, retry_after: None, date: None, others: false }
    }

    /// Returns the instant of the `Date` header, which is the service's time. A sync passes this instant
    /// to [`CallSync::apply`](super::CallSync::apply).
    #[must_use]
    pub fn date(&self) -> Option<Timestamp> {
        http_date::parse(self.date?)
    }

    /// Returns whether the response has no header at all. Every response of the service has
    /// headers.
    pub(super) fn is_bare(&self) -> bool {
        let known = [self.request_id, self.retry_after, self.date];
        !self.others && known.iter().all(Option::is_none)
    }

    /// Returns the status; `None` if the number is not a status of HTTP.
    pub(super) fn status_code(&self) -> Option<StatusCode> {
        StatusCode::from_u16(self.status).ok()
    }
}

impl<'a> From<&'a Parts> for ResponseHead<'a> {
    fn from(parts: &'a Parts) -> Self {
        let only = |name: HeaderName| {
            let values = parts.headers.get_all(name).iter();
            values.fold(Occurs::Absent, Occurs::and).only()?.to_str().ok()
        };
        Self {
            status: parts.status.as_u16(),
            request_id: only(REQUEST_ID_HEADER),
            retry_after: only(RETRY_AFTER),
            date: only(DATE),
            others: !parts.headers.is_empty(),
        }
    }
}
