//! The destination of an endpoint's deliveries, and the secrets that sign them.

use super::{EndpointHealth, EndpointUrl};
use crate::webhook::Signer;

/// The URL and the secrets of one endpoint, for [`Attempt::request`](super::super::Attempt::request).
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::{Signer, SigningSecret};
/// use call_assistant::webhook::sender::{EndpointHealth, EndpointUrl, SignedDestination};
/// # let row = ("https://hooks.example.com/calls", "whsec_shown-once");
///
/// // Where the endpoint's row is read:
/// let endpoint = EndpointHealth::new(1, Timestamp::UNIX_EPOCH);
/// let signer = Signer::new(SigningSecret::parse(row.1)?);
/// let destination = SignedDestination::new(&endpoint, EndpointUrl::parse(row.0)?, signer);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The destination contains its endpoint's number. Therefore, an attempt to another endpoint cannot use
/// this URL and these secrets.
#[derive(Clone, Debug)]
pub struct SignedDestination {
    pub(in super::super) endpoint: u64,
    pub(in super::super) target: EndpointUrl,
    pub(in super::super) signer: Signer,
}

impl SignedDestination {
    /// Creates the destination of an endpoint from the URL and the secrets in the endpoint's row.
    #[must_use]
    pub fn new(endpoint: &EndpointHealth, target: EndpointUrl, signer: Signer) -> Self {
        Self { endpoint: endpoint.id(), target, signer }
    }

    /// Returns the endpoint's URL.
    #[must_use]
    pub fn target(&self) -> &EndpointUrl {
        &self.target
    }
}
