//! What bounds a list of calls: how many at a time ([`Limit`]) and written when ([`CreatedRange`]).
//!
//! Both are plain, already checked values, the same at both ends: the customer writes them into a
//! query, the service reads them out of it and hands them to its store.

use core::fmt;
use core::time::Duration;

use crate::Timestamp;

/// The most calls a page may hold: 1 to 100, and 50 where nothing is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit(u8);

impl Limit {
    /// The smallest limit.
    pub const MIN: Self = Self(1);

    /// The limit of a request that names none.
    pub const DEFAULT: Self = Self(50);

    /// The largest limit.
    pub const MAX: Self = Self(100);

    /// Takes a number of calls. What is out of range is refused, never clamped: a quiet clamp
    /// would make a caller who counts rows believe that a short page is the last one.
    ///
    /// # Errors
    /// The number is 0 or above 100.
    pub fn new(calls: u64) -> Result<Self, LimitError> {
        match u8::try_from(calls).map(Self) {
            Ok(limit) if limit >= Self::MIN && limit <= Self::MAX => Ok(limit),
            _ => Err(LimitError { calls }),
        }
    }

    /// The number of calls.
    #[must_use]
    pub const fn calls(self) -> usize {
        // Widening: there is no `From` in a constant.
        #[allow(clippy::as_conversions)]
        {
            self.0 as usize
        }
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number that cannot be a [`Limit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limit is {calls}, not from {} to {}", Limit::MIN, Limit::MAX)]
#[non_exhaustive]
pub struct LimitError {
    /// The number.
    pub calls: u64,
}

/// Which calls a list is about, by `created_at`: from `created_after` on, and before
/// `created_before`.
///
/// `created_after` is inclusive, so a watermark finds its own call again; `created_before` is
/// not. Instants compare at full precision, whatever offset they were written with.
///
/// ```
/// use call_assistant::rest::{CreatedRange, CreatedRangeError};
/// use call_assistant::Timestamp;
///
/// let at = |seconds| Timestamp::from_unix(seconds);
/// let window = CreatedRange::new(at(100), at(200))?;
/// assert!(window.contains(at(100).unwrap()) && !window.contains(at(200).unwrap()));
///
/// // Equal bounds are an empty list; bounds the wrong way round are a mistake.
/// assert!(CreatedRange::new(at(100), at(100))?.is_empty());
/// assert_eq!(CreatedRange::new(at(200), at(100)), Err(CreatedRangeError));
/// # Ok::<(), CreatedRangeError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CreatedRange {
    created_after: Option<Timestamp>,
    created_before: Option<Timestamp>,
}

impl CreatedRange {
    /// Every call.
    pub const ALL: Self = Self { created_after: None, created_before: None };

    /// Takes the two bounds of a query.
    ///
    /// # Errors
    /// `created_after` is later than `created_before`. It is `created_before` that the refusal
    /// names.
    pub fn new(
        created_after: Option<Timestamp>,
        created_before: Option<Timestamp>,
    ) -> Result<Self, CreatedRangeError> {
        match (created_after, created_before) {
            (Some(after), Some(before)) if after > before => Err(CreatedRangeError),
            _ => Ok(Self { created_after, created_before }),
        }
    }

    /// The instant from which on calls were written, if it is bounded.
    #[must_use]
    pub const fn created_after(&self) -> Option<Timestamp> {
        self.created_after
    }

    /// The instant before which calls were written, if it is bounded.
    #[must_use]
    pub const fn created_before(&self) -> Option<Timestamp> {
        self.created_before
    }

    /// Whether a call written at this instant is within the bounds.
    #[must_use]
    pub fn contains(&self, created_at: Timestamp) -> bool {
        self.created_after.is_none_or(|after| after <= created_at)
            && self.created_before.is_none_or(|before| created_at < before)
    }

    /// Whether no instant is within the bounds, which spares asking the store.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.created_after.is_some() && self.created_after == self.created_before
    }

    /// Whether a request that asks for `asked` may go on with a list of this window: each bound is
    /// left out or repeated.
    #[must_use]
    pub fn goes_on_with(&self, asked: &Self) -> bool {
        let same =
            |own: Option<Timestamp>, asked: Option<Timestamp>| asked.is_none() || asked == own;
        same(self.created_after, asked.created_after)
            && same(self.created_before, asked.created_before)
    }

    /// The same window for a store that keeps microseconds only, as PostgreSQL's `timestamptz`.
    ///
    /// Such a store rounds the bounds it is given, down as well as up, and then returns calls that
    /// were not asked for. Both bounds rounded up select exactly the same of its rows. A bound
    /// within the last microsecond of the year 9999 stays as it is.
    #[must_use]
    pub fn in_microseconds(&self) -> Self {
        Self {
            created_after: self.created_after.map(up_to_microseconds),
            created_before: self.created_before.map(up_to_microseconds),
        }
    }
}

/// `created_after` is later than `created_before`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("created_before is earlier than created_after")]
pub struct CreatedRangeError;

fn up_to_microseconds(instant: Timestamp) -> Timestamp {
    match instant.subsec_nanos() % 1_000 {
        0 => instant,
        over => {
            let short = Duration::from_nanos(u64::from(1_000_u32.saturating_sub(over)));
            instant.checked_add(short).unwrap_or(instant)
        }
    }
}
