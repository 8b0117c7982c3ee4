//! One walk of a sync, and its reading of the first page.

use serde::{Deserialize, Serialize};

use super::walk::Walk;
use crate::Timestamp;
use crate::json::stored_object;
use crate::model::CallList;

/// A walk, and the watermark at its end. Because of the flattened field, serde reads this struct only
/// from an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SyncWalk {
    #[serde(flatten)]
    pub(super) list: Walk,
    /// The watermark at the end of the walk.
    pub(super) goal: Option<Timestamp>,
    /// The value of `CallSync::kept` at the end of the walk.
    pub(super) kept: Option<Timestamp>,
    /// The beginning of the walk; `None` after a page has shown a call.
    opening: Option<Opening>,
}

stored_object! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Opening {
        date: Option<Timestamp>,
        /// Whether the first page has not been read yet.
        first: bool,
    }
}

impl SyncWalk {
    pub(super) fn new(
        watermark: Option<Timestamp>,
        kept: Option<Timestamp>,
        date: Option<Timestamp>,
        clock: Timestamp,
    ) -> Self {
        let passed = kept.filter(|kept| *kept <= clock);
        Self {
            list: Walk::default(),
            goal: watermark.max(passed),
            kept: kept.filter(|_| passed.is_none()),
            opening: Some(Opening { date, first: true }),
        }
    }

    pub(super) fn restarted(&self) -> Self {
        Self { list: self.list.restarted(), ..self.clone() }
    }

    /// Determines the time at which the walk began. A correct `created_at` is never later than the
    /// service's time.
    pub(super) fn look(&mut self, page: &CallList, clock: Timestamp) {
        let Some(opening) = self.opening.take() else { return };
        let written = || page.calls().map(|call| call.created_at);
        let Some(largest) = written().max() else {
            self.opening = Some(Opening { first: false, ..opening });
            return;
        };
        match opening.believed(written(), clock) {
            Some(believed) => self.goal = self.goal.max(Some(believed)),
            // D-91: it bounds nothing yet. The earliest is kept, so as not to wait for the year 9999.
            None => {
                self.kept = [Some(largest), opening.date, self.kept].into_iter().flatten().min();
            }
        }
    }
}

impl Opening {
    /// Returns the largest `created_at` of a page that is not later than the beginning of the walk.
    fn believed(
        self,
        written: impl Iterator<Item = Timestamp>,
        clock: Timestamp,
    ) -> Option<Timestamp> {
        // On a later page, only calls written up to the `Date` of the first page count.
        let began = if self.first { Some(clock) } else { self.date }?;
        written.filter(|at| *at <= began).max()
    }
}
