//! The one thing that needs std: a host's clock reading as a [`Timestamp`].

extern crate std;

use std::time::SystemTime;

use crate::Timestamp;

/// A clock set outside the years 0000 to 9999 reads as the nearer end.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use call_assistant::Timestamp;
///
/// let now = Timestamp::from(SystemTime::now());
/// assert!(now > Timestamp::UNIX_EPOCH);
/// ```
impl From<SystemTime> for Timestamp {
    fn from(instant: SystemTime) -> Self {
        match instant.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Self::UNIX_EPOCH.saturating_add(after),
            Err(before) => Self::UNIX_EPOCH.saturating_sub(before.duration()),
        }
    }
}
