//! What an attempt holds of the planner's limits until nothing of it is left.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use call_assistant::webhook::sender::Outcome;

use super::{Message, Outbox};

/// A part of its endpoint's limit. It is free again when the last clone is dropped: that of the
/// attempt, or of a thread that still looks up a name though the attempt has timed out.
#[derive(Clone, Debug)]
pub(super) struct Slot(Arc<Held>);

#[derive(Debug)]
struct Held {
    endpoint: u32,
    outcome: OnceLock<(Outcome, Duration)>,
    outbox: Outbox,
}

impl Slot {
    pub(super) fn new(endpoint: u32, outbox: Outbox) -> Self {
        Self(Arc::new(Held { endpoint, outcome: OnceLock::new(), outbox }))
    }

    /// Sets what the planner is told when the slot is free.
    pub(super) fn finish(self, outcome: Outcome, took: Duration) {
        let _ = self.0.outcome.set((outcome, took));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let finished = self.outcome.get().copied();
        let (outcome, took) = finished.unwrap_or((Outcome::Unsent, Duration::ZERO));
        let _ = self.outbox.0.send(Message::Finished { endpoint: self.endpoint, outcome, took });
    }
}
