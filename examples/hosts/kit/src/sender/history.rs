//! Whether the database went back: a standby that lagged was promoted, a backup was restored, or a
//! sequence was set back.
//!
//! A sender then remembers rows that are gone, and their numbers are given again, to others. Nothing is sent but
//! what was planned, for each row that is read is compared with what is planned of it.
//! A difference is reported here. Then everything is forgotten and found again.

use std::fmt::{self, Display};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::log;

/// Where it is reported that the database went back. Clones share it.
#[derive(Clone)]
pub struct History(Arc<Seen>);

struct Seen {
    is_known: AtomicBool,
    is_to_be_read: AtomicBool,
    count: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("History").field(&self.0.is_known).finish_non_exhaustive()
    }
}

impl History {
    /// Creates a place for reports, and how each of them is counted.
    pub fn new(count: impl Fn() + Send + Sync + 'static) -> Self {
        let (is_known, is_to_be_read) = (AtomicBool::new(false), AtomicBool::new(false));
        Self(Arc::new(Seen { is_known, is_to_be_read, count: Box::new(count) }))
    }

    /// Reports that the database went back, and what was seen of it. Until everything is found again, the
    /// first report is enough.
    pub fn went_back(&self, seen: impl Display) {
        if !self.0.is_known.swap(true, Ordering::Relaxed) {
            log::error(format!("the database went back: {seen}")).write();
            (self.0.count)();
            self.look_again();
        }
    }

    /// Asks for everything to be found again; with a reason, because the database went back.
    pub(super) fn report(&self, why: Option<String>) {
        match why {
            Some(why) => self.went_back(why),
            None => self.look_again(),
        }
    }

    /// Asks for everything to be found again.
    pub fn look_again(&self) {
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
