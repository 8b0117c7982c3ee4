//! Receiving webhooks.
//!
//! All modules follow two rules. A receiver takes the body as bytes, before any code reads the body
//! as JSON. A receiver acknowledges a delivery when its bytes are stored, so that a later version can
//! handle an event that this version cannot read. [`axum_inbox`] handles the event first.

use std::sync::mpsc::Sender;
use std::time::SystemTime;

use call_assistant::Timestamp;
use call_assistant::webhook::receiver::{EventKey, Receipt};
use call_assistant::webhook::{Verifier, WebhookResponse};

pub mod actix;
pub mod axum_extractor;
pub mod axum_handler;
pub mod axum_inbox;
pub mod hyper;
pub mod lambda;
pub mod poem;
pub mod tower_layer;

/// The longest body that is read, in bytes. Events have a few kilobytes.
pub const LONGEST_BODY: usize = 1024 * 1024;

/// The state of a receiver: a verifier, created once, and the queue of the store for events.
#[derive(Clone, Debug)]
pub struct Hooks {
    pub verifier: Verifier,
    /// A placeholder for a table with a unique key. `Event::from_bytes_verified_earlier` reads the
    /// stored bytes.
    pub queue: Sender<(EventKey, Vec<u8>)>,
}

impl Hooks {
    /// Stores a genuine body, even if it is no event, and returns the answer.
    pub fn keep(&self, receipt: Receipt, body: &[u8]) -> WebhookResponse {
        match self.queue.send((receipt.key().clone(), body.into())) {
            Ok(()) => receipt.stored(),
            Err(_) => WebhookResponse::Unavailable,
        }
    }
}

/// Returns the time. Only this function of the examples reads a clock.
#[must_use]
#[allow(clippy::disallowed_methods)]
pub fn now() -> Timestamp {
    SystemTime::now().into()
}
