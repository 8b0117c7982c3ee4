//! What a receiver answers.

use http::{Response, StatusCode};

/// What a receiver says to a delivery. Any 2xx acknowledges it; everything else makes the service
/// try again, up to six attempts in all.
///
/// ```
/// use call_assistant::webhook::WebhookResponse;
///
/// let answer: http::Response<Vec<u8>> = WebhookResponse::Duplicate.into_response();
/// assert_eq!(answer.status(), 204);
/// assert_eq!(WebhookResponse::Unavailable.status(), 503);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WebhookResponse {
    /// The event is safely stored: 204.
    Accepted,
    /// An event seen before: 204, for it has already been accepted.
    Duplicate,
    /// An event of a type that is not handled here: 204. Anything else would count as a failed
    /// delivery, and twenty of those in a row disable the endpoint.
    Ignored,
    /// The signature does not prove the body, or a header contradicts it: 400.
    Rejected,
    /// The event cannot be stored now: 503, and the service tries again later.
    Unavailable,
    /// 410: the service disables the endpoint at once, and no further event comes. Nothing in this
    /// crate answers so by itself.
    DisableEndpoint,
}

impl WebhookResponse {
    /// The status to answer with.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Accepted | Self::Duplicate | Self::Ignored => StatusCode::NO_CONTENT,
            Self::Rejected => StatusCode::BAD_REQUEST,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::DisableEndpoint => StatusCode::GONE,
        }
    }

    /// The answer, with an empty body of whatever type the host uses.
    #[must_use]
    pub fn into_response<B: Default>(self) -> Response<B> {
        let mut response = Response::new(B::default());
        *response.status_mut() = self.status();
        response
    }
}
