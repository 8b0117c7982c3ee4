//! Whether the database went back: a standby that lagged was promoted, a backup was restored, or a
//! sequence was set back.
//!
//! A sender then remembers rows that are gone, and their numbers are given again, to others. Nothing is sent but
//! what was planned, for each row that is read is compared with what is planned of it.
//! A difference is reported here. Then everything is forgotten and found again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::log;

/// Where it is reported that the database went back. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    is_known: AtomicBool,
    is_to_be_read: AtomicBool,
    times: AtomicU64,
}

impl History {
    /// Returns how often the database was found to be at an earlier time.
    pub fn times(&self) -> u64 {
        self.0.times.load(Ordering::Relaxed)
    }

    /// Asks for everything to be found again. With a reason, it reports that the database went back: until everything
    /// is found again, the first report is enough.
    pub fn look_again(&self, went_back: Option<&str>) {
        if let Some(seen) = went_back {
            if self.0.is_known.swap(true, Ordering::Relaxed) {
                return;
            }
            log::error!("the database went back: {seen}");
            self.0.times.fetch_add(1, Ordering::Relaxed);
        }
        self.0.is_to_be_read.store(true, Ordering::Relaxed);
    }

    /// Tells whether everything is to be found again. A difference that is noticed from then on is news.
    pub(super) fn is_to_be_read(&self) -> bool {
        self.0.is_to_be_read.swap(false, Ordering::Relaxed)
    }

    /// A difference that is noticed from now on is news.
    pub(super) fn begins(&self) {
        self.0.is_known.store(false, Ordering::Relaxed);
    }
}
