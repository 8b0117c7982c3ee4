//! Whether the database went back: a standby that lagged was promoted, a backup was restored, or a
//! sequence was set back.
//!
//! What a sender remembers is then of rows that are gone, and their numbers are given again, to
//! others. Nothing is sent but what was planned: [`SenderTask`](super::task::SenderTask) compares
//! each row that it reads with what it remembers of it. Whoever notices a difference says so here.
//! Then [`Poller`](super::poll::Poller) has everything forgotten, and reads everything again.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::counted::Counted;
use host::log;

/// How long to wait before everything is read again.
const WAIT: Duration = Duration::from_millis(500);

/// Where it is reported that the database went back. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct History {
    again: Arc<Notify>,
    is_known: Arc<AtomicBool>,
    counted: Counted,
}

impl History {
    pub(super) fn new(counted: Counted) -> Self {
        Self { again: Arc::default(), is_known: Arc::default(), counted }
    }

    /// Reports that the database went back, and what was seen of it. Until everything is read again,
    /// the first report is enough.
    pub(super) fn went_back(&self, seen: impl Display) {
        if !self.is_known.swap(true, Ordering::Relaxed) {
            log::error(format!("the database went back: {seen}")).write();
            self.counted.went_back();
            self.read_again();
        }
    }

    /// Asks for everything to be read again.
    pub(super) fn read_again(&self) {
        self.again.notify_one();
    }

    /// Waits until everything is to be read again.
    pub(super) async fn is_to_be_read_again(&self) {
        self.again.notified().await;
    }

    /// Waits a little before everything is read again, so that nothing of this is a loop without a
    /// wait. What is noticed from then on is news.
    pub(super) async fn wait(&self) {
        tokio::time::sleep(WAIT).await;
        self.is_known.store(false, Ordering::Relaxed);
    }
}
