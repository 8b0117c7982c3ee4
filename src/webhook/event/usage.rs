//! Whether an account has used 75 % of its included minutes.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Decides when an account's usage is reported: once per period, at 75 %.
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
///
/// Store this small state with the account, in the transaction that stores the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageWatch {
    /// The beginning of the period that was reported last.
    reported: Option<Timestamp>,
}

impl UsageWatch {
    /// Records the usage in the period that began at `period_began`. Returns `Some` the first time
    /// that it reaches three quarters in this period.
    ///
    /// `used` and `included` have the same unit, minutes or a finer one. If nothing is included,
    /// there is no threshold. If the included amount changes within a period, the new one counts, but
    /// a reported period is not reported again. A reading of a period before the last reported one is
    /// late, and ignored.
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

/// Proves that usage has just reached the threshold. Only [`UsageWatch`] creates it, for one event.
#[derive(Debug)]
#[must_use]
pub struct ThresholdReached(());

/// In whole numbers, so that nothing is rounded: 75 % of 1001 minutes is reached with 751.
fn reached(used: u64, included: u64) -> bool {
    let [used, included] = [used, included].map(u128::from);
    // Below 2^66.
    included > 0 && used.saturating_mul(4) >= included.saturating_mul(3)
}
