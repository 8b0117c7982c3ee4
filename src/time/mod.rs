//! Instants: [`Timestamp`], the one type for every time in this crate.
//!
//! There is no clock here. Whatever depends on the time takes `now` as its last argument, so a
//! test decides what time it is.
//!
//! An instant is written as RFC 3339 with `Z` and with as many fraction digits as it needs, so
//! that reading it again gives the same instant. Reading, and both directions in JSON, come with
//! the feature `events`.
//!
//! ```
//! use core::time::Duration;
//! use call_assistant::Timestamp;
//!
//! let started = Timestamp::from_unix(1_784_887_200).ok_or("out of range")?;
//! assert_eq!(started.to_string(), "2026-07-24T10:00:00Z");
//!
//! let answered = started.saturating_add(Duration::from_millis(2_500));
//! assert_eq!(answered.to_string(), "2026-07-24T10:00:02.5Z");
//! assert_eq!(answered.since(started), Duration::from_millis(2_500));
//! # Ok::<(), &str>(())
//! ```

#[cfg(feature = "client")]
pub(crate) mod http_date;
#[cfg(feature = "events")]
mod rfc3339;
#[cfg(feature = "std")]
mod system_time;
pub(crate) mod timestamp;

#[cfg(feature = "events")]
pub use rfc3339::{ParseTimestampError, offset};
