//! Limits on the attempts in flight, and on the attempts that begin in a second.

use alloc::collections::BTreeMap;
use core::num::NonZeroU32;

/// The limits on the attempts that are in flight at once.
///
/// ```
/// use call_assistant::webhook::sender::SenderLimits;
///
/// let limits = SenderLimits { overall: 448, per_endpoint: 8 };
/// ```
///
/// An attempt takes up to ten seconds. If N endpoints of one account can be slow at the same time,
/// set `overall` to more than 4 N. Set `per_endpoint` well below `overall`. If one of the limits is
/// 0, the planner returns no delivery.
///
/// Closed: a host has to choose each limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SenderLimits {
    /// The limit for all endpoints together.
    pub overall: u32,
    /// The limit for each endpoint. Values above 65,535 count as 65,535.
    pub per_endpoint: u32,
}

/// The attempts that an operator [limits](super::Planner::limit).
///
/// Closed: a planner has no limits of another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitOf {
    /// All attempts.
    All,
    /// The attempts of an account.
    Account(u32),
    /// The attempts of an endpoint.
    Endpoint(u32),
}

/// The number of attempts that may begin in a second.
///
/// Closed: a planner has a rule for each rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rate {
    /// No limit.
    Unlimited,
    /// This number of attempts, on average. Attempts that were allowed in the last tenth of a
    /// second, but did not begin, may begin later. Therefore, up to 10 % more attempts, rounded up,
    /// may begin in one second.
    PerSecond(NonZeroU32),
    /// No attempt.
    Paused,
}

/// The limits that are set, and when each limit allows the next attempt.
#[derive(Default)]
pub(super) struct Rates(BTreeMap<LimitOf, Valve>);

#[derive(Clone, Copy)]
struct Valve {
    /// The microseconds between two attempts, or [`NEVER`] during a pause.
    interval: i64,
    /// When the next attempt may begin, or [`NEVER`] during a pause.
    next: i64,
}

/// A time that is never reached.
pub(super) const NEVER: i64 = i64::MAX;

/// The time for which a limit saves unused attempts: 100,000 microseconds.
const BURST: i64 = 100_000;

impl Rates {
    /// Sets a limit. If the limit already has this rate, nothing changes.
    pub(super) fn set(&mut self, of: LimitOf, rate: Rate, now: i64) {
        let interval = match rate {
            Rate::Unlimited => {
                self.0.remove(&of);
                return;
            }
            Rate::PerSecond(number) => i64::from((1_000_000 / number).max(1)),
            Rate::Paused => NEVER,
        };
        if self.0.get(&of).is_none_or(|valve| valve.interval != interval) {
            let next = if interval == NEVER { NEVER } else { now };
            self.0.insert(of, Valve { interval, next });
        }
    }

    /// Returns the time from which a limit allows an attempt, or [`NEVER`] during a pause.
    pub(super) fn from(&self, of: LimitOf, now: i64) -> i64 {
        let Some(valve) = self.0.get(&of) else { return i64::MIN };
        // What is too far ahead was set by another clock.
        let is_wrong = valve.next.saturating_sub(now) > valve.interval;
        if is_wrong { now } else { valve.next }
    }

    /// Counts an attempt in each limit that applies to the attempt.
    pub(super) fn use_up(&mut self, account: u32, endpoint: u32, now: i64) {
        for of in [LimitOf::All, LimitOf::Account(account), LimitOf::Endpoint(endpoint)] {
            let from = self.from(of, now).max(now.saturating_sub(BURST));
            if let Some(valve) = self.0.get_mut(&of) {
                valve.next = from.saturating_add(valve.interval);
            }
        }
    }
}
