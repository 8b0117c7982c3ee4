//! Receiving webhooks.
//!
//! Two rules hold in all of them. The body is taken as bytes, before anything reads it as JSON.
//! And a delivery is acknowledged once it is stored, not once it has been acted on.

use std::sync::mpsc::Sender;
use std::time::SystemTime;

use call_assistant::time::Timestamp;
use call_assistant::webhook::event::Event;
use call_assistant::webhook::{Receipt, Verified, Verifier};

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
    /// Stands for a table with the account and the event's id as its key.
    pub queue: Sender<Event>,
}

impl Hooks {
    /// Stores the event of a genuine delivery, and says what to answer.
    pub fn keep(&self, verified: &Verified<'_>) -> Receipt {
        match verified.event() {
            Ok(event) => self.store(event),
            // Genuine, and not readable: the error knows whether it may come again.
            Err(error) => error.receipt(),
        }
    }

    /// Stores an event. When this says accepted, the service may forget it.
    pub fn store(&self, event: Event) -> Receipt {
        match self.queue.send(event) {
            Ok(()) => Receipt::Accepted,
            Err(_) => Receipt::NotNow,
        }
    }
}

/// The one place where these examples read a clock.
#[must_use]
#[allow(clippy::disallowed_methods)]
pub fn now() -> Timestamp {
    SystemTime::now().into()
}
