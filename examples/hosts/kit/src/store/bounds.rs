//! The most of each thing that an owner's login can make, in one table.
//!
//! Lists show all that a customer makes, and processes read it, so each thing has a bound. Operators and
//! `--data` are outside. The number of endpoints holds for all: [`EndpointLimit`](super::EndpointLimit).

use std::time::Duration;

use call_assistant::Timestamp;

use super::scope::By;
use super::{Done, Refused};

/// The most of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The things that are counted, in words that follow a number.
    pub what: &'static str,
    pub most: u32,
    /// How far back they are counted; `None`: all there are.
    pub span: Option<Duration>,
}

const DAY: Duration = Duration::from_secs(86_400);
const MINUTE: Duration = Duration::from_secs(60);

/// Keys of an account that are neither revoked nor expired.
pub const WORKING_KEYS: Bound = Bound { what: "working keys", most: 100, span: None };

/// Keys of an account, whatever became of them.
pub const KEYS_MADE: Bound =
    Bound { what: "keys made in the last 24 hours", most: 200, span: Some(DAY) };

/// Endpoints of an account.
pub const ENDPOINTS_DELETED: Bound =
    Bound { what: "endpoints deleted in the last 24 hours", most: 100, span: Some(DAY) };

/// Manual attempts of a delivery.
pub const MANUAL_ATTEMPTS: Bound =
    Bound { what: "manual attempts of the delivery", most: 20, span: None };

/// Changes of an account by its owner that have no other bound, in each process.
pub const EDITS: Bound =
    Bound { what: "edits and pings in a minute", most: 60, span: Some(MINUTE) };

impl Bound {
    /// Checks that an owner may make one more, where there are so many.
    ///
    /// # Errors
    /// The bound is reached: a conflict that says so.
    pub fn check(&self, by: By, so_far: impl TryInto<u64>) -> Done<()> {
        let so_far = so_far.try_into().unwrap_or(u64::MAX);
        match by != By::OWNER || so_far < self.most.into() {
            true => Ok(()),
            false => Err(Refused::Conflict(self.reached(so_far))),
        }
    }

    /// Returns since when they are counted.
    pub fn since(&self, now: Timestamp) -> Timestamp {
        self.span.map_or(Timestamp::MIN, |span| now.saturating_sub(span))
    }

    /// Returns what is said where it is reached.
    pub fn reached(&self, so_far: u64) -> String {
        let Self { what, most, .. } = self;
        format!("{so_far} {what}, and the limit is {most}")
    }
}
