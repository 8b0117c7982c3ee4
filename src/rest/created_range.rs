//! The bounds of a list by `created_at`.

use core::time::Duration;

use super::ParameterError;
use crate::Timestamp;

/// The bounds of calls by `created_at`: from `created_after` on, and before `created_before`.
///
/// ```
/// use call_assistant::rest::{CreatedRange, ParameterError};
/// use call_assistant::Timestamp;
///
/// let at = |seconds| Timestamp::from_unix(seconds);
/// let range = CreatedRange::new(at(100), at(200))?;
/// assert!(range.contains(at(100).unwrap()) && !range.contains(at(200).unwrap()));
///
/// // Equal bounds select nothing. Bounds in the wrong order are an error.
/// assert!(CreatedRange::new(at(100), at(100))?.is_empty());
/// assert_eq!(CreatedRange::new(at(200), at(100)), Err(ParameterError::CreatedRange));
/// # Ok::<(), ParameterError>(())
/// ```
///
/// `created_after` is inclusive, so a watermark finds its own call again; `created_before` is
/// exclusive. Instants compare at full precision, with any offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CreatedRange {
    created_after: Option<Timestamp>,
    created_before: Option<Timestamp>,
}

impl CreatedRange {
    /// The range without bounds: every call.
    pub const ALL: Self = Self { created_after: None, created_before: None };

    /// Creates a range from its two bounds.
    ///
    /// # Errors
    /// `created_after` is later than `created_before`.
    pub fn new(
        created_after: Option<Timestamp>,
        created_before: Option<Timestamp>,
    ) -> Result<Self, ParameterError> {
        match (created_after, created_before) {
            (Some(after), Some(before)) if after > before => Err(ParameterError::CreatedRange),
            _ => Ok(Self { created_after, created_before }),
        }
    }

    /// Returns the inclusive lower bound.
    #[must_use]
    pub const fn created_after(&self) -> Option<Timestamp> {
        self.created_after
    }

    /// Returns the exclusive upper bound.
    #[must_use]
    pub const fn created_before(&self) -> Option<Timestamp> {
        self.created_before
    }

    /// Returns whether a call created at this instant is within the bounds.
    #[must_use]
    pub fn contains(&self, created_at: Timestamp) -> bool {
        self.created_after.is_none_or(|after| after <= created_at)
            && self.created_before.is_none_or(|before| created_at < before)
    }

    /// Returns whether no instant is within the bounds: there is nothing to look up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.created_after.is_some() && self.created_after == self.created_before
    }

    /// Rounds both bounds up to microseconds, for a store that keeps no more, such as
    /// PostgreSQL's `timestamptz`.
    ///
    /// Such a store may round a bound down, and then returns calls outside the range. Bounds
    /// rounded up select exactly the same rows. A bound within the last microsecond of the year
    /// 9999 stays as it is.
    #[must_use]
    pub fn ceil_to_micros(&self) -> Self {
        Self {
            created_after: self.created_after.map(up_to_microseconds),
            created_before: self.created_before.map(up_to_microseconds),
        }
    }
}

fn up_to_microseconds(instant: Timestamp) -> Timestamp {
    match instant.floor_to_micros() {
        floor if floor == instant => instant,
        floor => floor.checked_add(Duration::from_micros(1)).unwrap_or(instant),
    }
}
