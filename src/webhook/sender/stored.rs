//! The version of a stored row, and the numbers and texts that its columns may have.

use alloc::string::String;
use core::hash::{Hash, Hasher};

use serde::{Deserialize, Deserializer, Serialize};

use super::schedule::MAX_ATTEMPTS;

/// The version of a stored value, and the version of its row when the row was read.
///
/// Two values are equal if their `number`s are equal.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Version {
    number: u32,
    #[serde(skip)]
    stored: u32,
}

impl Version {
    /// Creates the version of a value that has just been read or stored.
    pub(super) const fn read(number: u32) -> Self {
        Self { number, stored: number }
    }

    pub(super) fn number(self) -> u32 {
        self.number
    }

    /// Returns the version that the stored row must have, or `None` if the value has not changed.
    pub(super) fn condition(self) -> Option<i32> {
        (self.number != self.stored).then(|| signed(self.stored))
    }

    pub(super) fn change(&mut self) {
        self.number = next_version(self.number);
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        version(deserializer).map(Self::read)
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Version {}

impl Hash for Version {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

/// A value belongs to another delivery or endpoint than the caller has given.
///
/// A delivery and an endpoint contain the numbers of their rows. An [`Attempt`](super::Attempt) and an
/// [`AttemptReport`](super::AttemptReport) contain the numbers of the rows to which they belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MismatchError {
    /// The attempt belongs to another delivery.
    #[error("the attempt belongs to another delivery")]
    Delivery,
    /// The endpoint, or the endpoint of the destination, is not the endpoint of the delivery.
    #[error("the endpoint is not that of the delivery")]
    Endpoint,
    /// The event is not the event of the attempt's delivery.
    #[error("the event is not that of the delivery")]
    Event,
    /// The rows that were given to a recovery are not the next rows of the recovery.
    #[error(
        "the rows found are not in ascending order of ids, each after the last one of the recovery"
    )]
    Order,
}

/// A stored value that this version of the crate cannot read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// A number that this crate never stores.
    #[error("{field} is {value}, not from 0 to {max}")]
    #[non_exhaustive]
    Number {
        /// The column.
        field: &'static str,
        /// The number in the column.
        value: i32,
        /// The largest number that is allowed.
        max: i32,
    },
    /// A text that this version of the crate does not know, for example a
    /// [`DeliveryStatus`](super::DeliveryStatus) of a later version.
    #[error("{field} is {text:?}, which this version does not know")]
    #[non_exhaustive]
    Text {
        /// The column.
        field: &'static str,
        /// The text in the column.
        text: String,
    },
}

/// Defines an enum that JSON and a column contain as a text. The reader refuses an unknown text.
macro_rules! stored_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident in $column:literal {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the text, in JSON and in a column.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl core::str::FromStr for $name {
            type Err = $crate::webhook::sender::stored::ColumnError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let known = Self::ALL.iter().copied().find(|one| one.as_str() == text);
                known.ok_or_else(|| Self::Err::Text { field: $column, text: text.into() })
            }
        }
    };
}
pub(super) use stored_enum;

#[expect(clippy::expect_used, reason = "every way to make a number keeps it within i32::MAX")]
pub(super) fn signed(number: u32) -> i32 {
    i32::try_from(number).expect("at most i32::MAX")
}

pub(super) fn unsigned(field: &'static str, value: i32) -> Result<u32, ColumnError> {
    u32::try_from(value).map_err(|_| ColumnError::Number { field, value, max: i32::MAX })
}

pub(super) fn small(field: &'static str, value: i16, max: u8) -> Result<u8, ColumnError> {
    let fits = u8::try_from(value).ok().filter(|value| *value <= max);
    fits.ok_or_else(|| ColumnError::Number { field, value: value.into(), max: max.into() })
}

/// The largest version or generation: the maximum of an `integer` column.
const MAX_VERSION: u32 = i32::MAX.unsigned_abs();

/// Returns the version or generation after `version`.
pub(super) fn next_version(version: u32) -> u32 {
    if version < MAX_VERSION { version.saturating_add(1) } else { 0 }
}

/// Returns the version or generation before `version`.
pub(super) fn previous_version(version: u32) -> u32 {
    version.checked_sub(1).unwrap_or(MAX_VERSION)
}

pub(super) fn optional_version<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    version(deserializer).map(Some)
}

pub(super) fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        version @ 0..=MAX_VERSION => Ok(version),
        _ => Err(serde::de::Error::custom(format_args!(
            "version or generation is more than {MAX_VERSION}"
        ))),
    }
}

/// Reads the number of an attempt, from 1 to 6. A failed attempt with any other number would end its
/// delivery too early or too late.
pub(super) fn attempt<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    match u8::deserialize(deserializer)? {
        number @ 1..=MAX_ATTEMPTS => Ok(number),
        _ => Err(serde::de::Error::custom(format_args!(
            "attempt number is not from 1 to {MAX_ATTEMPTS}"
        ))),
    }
}
