//! The answer of a receiver.

use http::{Response, StatusCode};

/// The answer to a delivery.
///
/// Open: the protocol may define more statuses.
///
/// ```
/// use call_assistant::webhook::WebhookResponse;
///
/// let response: http::Response<Vec<u8>> = WebhookResponse::Unavailable.into_response();
/// assert_eq!(response.status(), 503);
/// ```
///
/// Any 2xx acknowledges the delivery, and the service does not send the event again. Therefore
/// answer 2xx only to a genuine event that you have stored or handled. A 410 disables the endpoint.
/// After any other status, the service tries again until the last attempt of the delivery. A
/// `WebhookResponse` answers one request. Therefore the value cannot be copied, and its conversion
/// into an HTTP response or a status consumes the value.
#[derive(Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WebhookResponse {
    /// 204: the event is safely stored, or was handled. With the feature `client`,
    /// `Receipt::stored` and `ActiveClaim::done` of `webhook::receiver` create this variant.
    #[non_exhaustive]
    Accepted,
    /// 204: the event was handled before. `webhook::receiver::Receipt::claim` creates this variant.
    #[non_exhaustive]
    Duplicate,
    /// 400: the signature does not prove that the body is genuine, or a header contradicts the
    /// body.
    Rejected,
    /// 503: the event cannot be stored now. The service tries again later.
    Unavailable,
    /// 410: the service disables the endpoint immediately and sends no further event. No function
    /// of this crate returns this variant.
    DisableEndpoint,
}

impl WebhookResponse {
    /// Returns the status, for a framework with its own response type.
    #[must_use]
    pub const fn into_status(self) -> StatusCode {
        match self {
            Self::Accepted | Self::Duplicate => StatusCode::NO_CONTENT,
            Self::Rejected => StatusCode::BAD_REQUEST,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::DisableEndpoint => StatusCode::GONE,
        }
    }

    /// Creates the HTTP response, with an empty body of any type.
    #[must_use]
    pub fn into_response<B: Default>(self) -> Response<B> {
        let mut response = Response::new(B::default());
        *response.status_mut() = self.into_status();
        response
    }
}
