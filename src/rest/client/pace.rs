use core::time::Duration;

use crate::Timestamp;
use crate::json::stored_object;
use crate::rest::Quota;

stored_object! {
    /// The pace of requests, which never exceeds a quota, even during a long walk.
    ///
    /// ```
    /// use core::time::Duration;
    /// use call_assistant::rest::client::Pace;
    /// use call_assistant::rest::Quota;
    /// # let now = call_assistant::Timestamp::UNIX_EPOCH;
    ///
    /// let mut pace = Pace::new(Quota::READS);
    /// assert_eq!(pace.turn(now), Duration::ZERO);
    /// assert!(pace.turn(now) > Duration::from_millis(100)); // wait that long, then send
    /// ```
    ///
    /// A pace uses nine tenths of the quota. Because of delays in the network, requests can arrive
    /// closer together than they were sent. The unused tenth compensates for delays of up to five
    /// seconds. If other clients use the same credential, see [`shared`](Self::shared). A stored pace is
    /// checked when the pace is read.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Pace {
        #[serde(deserialize_with = "crate::json::read_stored")]
        gap: Duration,
        free_at: Option<Timestamp>,
        /// The latest `now` that was passed to `turn`.
        latest: Option<Timestamp>,
    }
    check: Pace::check
}

/// The longest time between two requests: a day.
const LONGEST_GAP: Duration = Duration::from_secs(24 * 60 * 60);

impl Pace {
    /// Creates the pace of a client that shares the quota with no other client.
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        Self::shared(quota, 1)
    }

    /// Creates the pace for one of several clients with the same credential. Zero clients are treated as
    /// one client. Each client can make at least one request a day.
    #[must_use]
    pub fn shared(quota: Quota, clients: u32) -> Self {
        const MINUTE_AT_NINE_TENTHS: Duration = Duration::from_nanos(66_666_666_667);
        let gap = MINUTE_AT_NINE_TENTHS.checked_div(quota.per_minute().into()).unwrap_or_default();
        let gap = gap.saturating_mul(clients.max(1)).min(LONGEST_GAP);
        Self { gap, free_at: None, latest: None }
    }

    /// Reserves the next slot for a request, and returns how long to wait for this slot.
    ///
    /// Any number of tasks can reserve slots in advance. Each task waits for its own slot. If the clock
    /// is set back by more than a minute, the reserved slots move back by the same time. Therefore no
    /// task waits for the clock to catch up.
    #[must_use]
    pub fn turn(&mut self, now: Timestamp) -> Duration {
        // A smaller step may come from tasks that read the clock in another order than they get here.
        let back = self.latest.map_or(Duration::ZERO, |latest| latest.since(now));
        if back > Quota::SPAN {
            self.free_at = self.free_at.map(|free_at| free_at.saturating_sub(back));
            self.latest = None;
        }
        self.latest = self.latest.max(Some(now));
        let turn = self.free_at.map_or(now, |free_at| free_at.max(now));
        self.free_at = Some(turn.saturating_add(self.gap));
        turn.since(now)
    }

    /// Refuses a stored pace that would make a client wait for years.
    fn check(&self) -> Result<(), &'static str> {
        if self.gap > LONGEST_GAP {
            return Err("gap is more than a day");
        }
        if self.free_at < self.latest || self.free_at.is_some() != self.latest.is_some() {
            return Err("free_at is not at latest or after it");
        }
        Ok(())
    }
}
