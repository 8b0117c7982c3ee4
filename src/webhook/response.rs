//! The answer of a receiver.

use http::{Response, StatusCode};

/// The answer to a delivery.
///
/// Open: the protocol may give more statuses a meaning.
///
/// ```
/// use call_assistant::webhook::WebhookResponse;
///
/// let response: http::Response<Vec<u8>> = WebhookResponse::Unavailable.into_response();
/// assert_eq!(response.status(), 503);
/// ```
///
/// Any 2xx acknowledges the delivery, and the service does not send the event again. A 2xx requires
/// a proof that the event is genuine and safe. A 410 disables the endpoint. After any other status
/// the service tries again, until the last attempt of the delivery. A response answers one request.
/// Therefore it cannot be copied, and converting it to an HTTP response or a status consumes it.
#[derive(Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WebhookResponse {
    /// 204: the event is safely stored, or was handled. Created by `webhook::receiver`, with the
    /// feature `client`: `Receipt::stored` and `ActiveClaim::done`.
    #[non_exhaustive]
    Accepted,
    /// 204: the event was handled before. Created by `webhook::receiver::Receipt::claim`.
    #[non_exhaustive]
    Duplicate,
    /// 400: the signature does not prove the body, or a header contradicts the body.
    Rejected,
    /// 503: the event cannot be stored now. The service tries again later.
    Unavailable,
    /// 410: the service disables the endpoint immediately and sends no further event. This crate
    /// never returns this variant by itself.
    DisableEndpoint,
}

impl WebhookResponse {
    /// Returns the status, for a framework with a response type of its own.
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
