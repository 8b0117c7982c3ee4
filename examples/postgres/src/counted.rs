//! What this process counts of its sender, for monitoring.

use std::sync::{Arc, Mutex, PoisonError};

use call_assistant::webhook::sender::SenderTally;

/// What the sender of this process has counted. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted(Arc<Mutex<SenderTally>>);

impl Counted {
    /// Changes it.
    pub(crate) fn count(&self, count: impl FnOnce(&mut SenderTally)) {
        count(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// What was counted by now.
    pub(crate) fn read(&self) -> SenderTally {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
