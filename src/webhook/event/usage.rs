//! Checks whether an account has used 75 % of its included minutes.

use crate::Timestamp;
use crate::json::stored_object;

stored_object! {
    /// The last billing period for which an event reported an account's usage. Each period is
    /// reported at most once, when the account has used 75 % of its included minutes.
    ///
    /// ```
    /// use call_assistant::Timestamp;
    /// use call_assistant::webhook::event::UsageWatch;
    ///
    /// let january = Timestamp::from_unix(1_767_225_600).unwrap();
    /// let mut watch = UsageWatch::default();
    ///
    /// assert!(!watch.record(january, 74, 100));
    /// assert!(watch.record(january, 75, 100)); // create `usage.threshold_reached`
    /// assert!(!watch.record(january, 99, 100));
    /// ```
    ///
    /// Store this small value with the account, in the transaction that stores the event.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct UsageWatch {
        /// The beginning of the period that was reported last.
        reported: Option<Timestamp>,
    }
}

impl UsageWatch {
    /// Records the usage in the period that began at `period_began`. If the usage reaches three
    /// quarters of `included` for the first time in this period, returns true.
    ///
    /// `used` and `included` have the same unit, which is minutes or a finer unit. If `included` is
    /// zero, returns false. If `included` changes within a period, the new amount applies, but a
    /// period that was reported is not reported again. A late reading from a period before the last
    /// reported period is ignored.
    #[must_use = "true is the time to create the event"]
    pub fn record(&mut self, period_began: Timestamp, used: u64, included: u64) -> bool {
        let reported = self.reported.is_some_and(|last| period_began <= last);
        if reported || !is_reached(used, included) {
            return false;
        }
        self.reported = Some(period_began);
        true
    }
}

/// Returns whether `used` is at least 75 % of `included`. Integers avoid rounding errors: 751 is
/// more than 75 % of 1001, but 750 is less.
fn is_reached(used: u64, included: u64) -> bool {
    let [used, included] = [used, included].map(u128::from);
    // Below 2^66.
    included > 0 && used.saturating_mul(4) >= included.saturating_mul(3)
}
