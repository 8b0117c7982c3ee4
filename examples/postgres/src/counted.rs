//! The counters of this process's sender, for monitoring.

use std::sync::{Arc, Mutex, PoisonError};

use call_assistant::webhook::sender::SenderTally;

/// The counters of this process's sender. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted(Arc<Mutex<SenderTally>>);

impl Counted {
    /// Changes the counters.
    pub(crate) fn count(&self, count: impl FnOnce(&mut SenderTally)) {
        count(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the counts so far.
    pub(crate) fn read(&self) -> SenderTally {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
