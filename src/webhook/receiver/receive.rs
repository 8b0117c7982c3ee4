//! From a verified delivery to its receipt.

use http::{HeaderMap, Response};

use super::receipt::Receipt;
use crate::Timestamp;
use crate::webhook::event::EventError;
use crate::webhook::{DeliveryHeaders, Verifier, VerifyError, WebhookResponse};

impl Verifier {
    /// Verifies a delivery as [`verify`](Self::verify) does, and reads its event.
    ///
    /// # Errors
    /// Returns a [`ReceiptError`] if the delivery is not genuine, or if a header that is not signed
    /// is repeated or contradicts the body. Log it, and answer with its
    /// [`response`](ReceiptError::response). A genuine body that is not an event is no
    /// error: every further attempt brings the same body, so it is to be stored, too.
    pub fn receive(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Receipt, ReceiptError> {
        Receipt::new(self.verify(headers, body, now)?)
    }

    /// Receives a delivery whose headers are not an `http` 1.x `HeaderMap`, as
    /// [`receive`](Self::receive) does.
    ///
    /// # Errors
    /// Returns a [`ReceiptError`], as [`receive`](Self::receive) does.
    pub fn receive_parts(
        &self,
        headers: DeliveryHeaders<'_>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Receipt, ReceiptError> {
        Receipt::new(self.verify_parts(headers, body, now)?)
    }
}

/// The reason for which a delivery was not received.
///
/// Open: a later version may tell apart what this one does not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// A signature that does not prove the body.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// An unsigned header that is repeated or contradicts the body.
    #[error(transparent)]
    Event(#[from] EventError),
}

impl ReceiptError {
    /// Returns the answer: always [`WebhookResponse::Rejected`].
    #[must_use]
    pub const fn response(&self) -> WebhookResponse {
        WebhookResponse::Rejected
    }

    /// Creates the HTTP response: always 400 with an empty body.
    ///
    /// The cause belongs in the receiver's log; the sender does not get it.
    #[must_use]
    pub fn into_response<B: Default>(self) -> Response<B> {
        self.response().into_response()
    }
}
