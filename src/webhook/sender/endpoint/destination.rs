//! Where the deliveries of one endpoint go, and what signs them.

use super::{Endpoint, Target};
use crate::webhook::Signer;

/// The URL and the secrets of one endpoint, for [`Attempt::request`](super::super::Attempt::request).
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::{Signer, SigningSecret};
/// use call_assistant::webhook::sender::{Destination, Endpoint, Target};
/// # let row = ("https://hooks.example.com/calls", "whsec_shown-once");
///
/// // Where the endpoint's row is read:
/// let endpoint = Endpoint::new(1, Timestamp::UNIX_EPOCH);
/// let signer = Signer::new(SigningSecret::parse(row.1)?);
/// let destination = Destination::new(&endpoint, Target::parse(row.0)?, signer);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It knows its endpoint's number, so no attempt to another endpoint is sent to this URL or signed with
/// these secrets.
#[derive(Clone, Debug)]
pub struct Destination {
    pub(in super::super) endpoint: u32,
    pub(in super::super) target: Target,
    pub(in super::super) signer: Signer,
}

impl Destination {
    /// Creates the destination of an endpoint from the URL and the secrets in its row.
    #[must_use]
    pub fn new(endpoint: &Endpoint, target: Target, signer: Signer) -> Self {
        Self { endpoint: endpoint.id(), target, signer }
    }

    /// Returns the URL and the endpoint's own headers.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }
}
