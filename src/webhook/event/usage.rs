//! When an account has used 75 % of its included minutes.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Whether an account's threshold was reported in this period: a small state to store with the
/// account, in the transaction that stores the event.
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::event::UsageWatch;
///
/// let january = Timestamp::from_unix(1_767_225_600).unwrap();
/// let mut watch = UsageWatch::default();
///
/// assert!(watch.record(january, 74, 100).is_none());
/// assert!(watch.record(january, 75, 100).is_some());
/// assert!(watch.record(january, 99, 100).is_none());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageWatch {
    /// When the period began that was reported last.
    reported: Option<Timestamp>,
}

impl UsageWatch {
    /// Takes note of the usage in the period that began then, and says whether that is the moment
    /// for an event: when three quarters are reached, once per period.
    ///
    /// `used` and `included` are in the same unit; finer ones than minutes do. Without anything
    /// included there is no threshold. If the included amount changes within a period, the new one
    /// counts, but a period that was reported is not reported again. A reading of a period before
    /// the one reported last is late, and passed over.
    #[must_use]
    pub fn record(
        &mut self,
        period_began: Timestamp,
        used: u64,
        included: u64,
    ) -> Option<ThresholdReached> {
        let reported = self.reported.is_some_and(|last| period_began <= last);
        if reported || !reached(used, included) {
            return None;
        }
        self.reported = Some(period_began);
        Some(ThresholdReached(()))
    }
}

/// Usage has just reached the threshold, which is worth one event. Only [`UsageWatch`] says so.
#[derive(Debug)]
#[must_use]
pub struct ThresholdReached(());

/// In whole numbers: 75 % of 1001 minutes is reached with 751 of them, and no rounding decides.
fn reached(used: u64, included: u64) -> bool {
    let [used, included] = [used, included].map(u128::from);
    // Below 2^66.
    included > 0 && used.saturating_mul(4) >= included.saturating_mul(3)
}
