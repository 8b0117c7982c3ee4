//! Receiving webhooks.
//!
//! Two rules hold in all of them. The body is taken as bytes, before anything reads it as JSON.
//! And a delivery is acknowledged once its bytes are stored, not once it has been acted on: what this
//! program cannot read today is there to be read tomorrow.

use std::sync::mpsc::Sender;
use std::time::SystemTime;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventError;
use call_assistant::webhook::{Verified, Verifier, WebhookResponse};

pub mod actix;
pub mod axum_extractor;
pub mod axum_handler;
pub mod lambda;
pub mod poem;
pub mod tower_layer;

/// The longest body that is read, in bytes. Events have a few kilobytes.
pub const LONGEST_BODY: usize = 1024 * 1024;

/// What every receiver holds: a verifier, made once, and the way to whatever stores events.
#[derive(Clone, Debug)]
pub struct Hooks {
    pub verifier: Verifier,
    /// Stands for a table with the account and the event's id as its key, or the body's digest
    /// where it is no event. `Event::from_bytes_verified_earlier` reads what comes out.
    pub queue: Sender<Vec<u8>>,
}

impl Hooks {
    /// Stores a genuine delivery, and says what to answer.
    pub fn keep(&self, verified: &Verified<'_>) -> WebhookResponse {
        match verified.event() {
            // A genuine body that is no event does not come again either.
            Ok(_) | Err(EventError::Malformed(_)) => self.store(verified.bytes()),
            Err(contradiction) => contradiction.response(),
        }
    }

    /// Stores a genuine body. When this says accepted, the service may forget it.
    pub fn store(&self, bytes: &[u8]) -> WebhookResponse {
        match self.queue.send(bytes.into()) {
            Ok(()) => WebhookResponse::Accepted,
            Err(_) => WebhookResponse::Unavailable,
        }
    }
}

/// The one place where these examples read a clock.
#[must_use]
#[allow(clippy::disallowed_methods)]
pub fn now() -> Timestamp {
    SystemTime::now().into()
}
