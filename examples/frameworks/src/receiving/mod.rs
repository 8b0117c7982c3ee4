//! Receiving webhooks.
//!
//! Two rules hold in all of them. The body is taken as bytes, before anything reads it as JSON.
//! And a delivery is acknowledged once its bytes are stored, not once it has been acted on: what this
//! program cannot read today is there to be read tomorrow. [`axum_inbox`] shows the other order.

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

/// What every receiver holds: a verifier, made once, and the way to whatever stores events.
#[derive(Clone, Debug)]
pub struct Hooks {
    pub verifier: Verifier,
    /// Stands for a table with a unique key. `Event::from_bytes_verified_earlier` reads what comes
    /// out.
    pub queue: Sender<(EventKey, Vec<u8>)>,
}

impl Hooks {
    /// Stores a genuine body, event or not, and says what to answer.
    pub fn keep(&self, receipt: Receipt, body: &[u8]) -> WebhookResponse {
        match self.queue.send((receipt.key().clone(), body.into())) {
            Ok(()) => receipt.stored(),
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
