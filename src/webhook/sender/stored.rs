//! What is stored: a row's version, and which numbers and texts its columns may have.

use alloc::string::String;
use core::ops::Deref;

use serde::{Deserialize, Deserializer};

use super::schedule::MAX_ATTEMPTS;

/// A [`Delivery`](super::Delivery), an [`Endpoint`](super::Endpoint) or a
/// [`Recovery`](super::Recovery) with the version that its stored row had when it was read.
///
/// ```
/// # use call_assistant::Timestamp;
/// # use call_assistant::webhook::sender::{Delivery, Endpoint, Row};
/// # let now = Timestamp::UNIX_EPOCH;
/// # let read = Endpoint::new(1, now);
/// let mut endpoint = Row::from(read); // read from the store
/// assert_eq!(endpoint.write(), None); // nothing has changed
///
/// endpoint.pause(now);
/// endpoint.enable(now);
/// let write = endpoint.write().unwrap();
/// // UPDATE endpoints SET ..., version = $version WHERE id = $id AND version = $if_version
/// assert_eq!((write.if_version, write.value.version()), (0, 2));
/// # Ok::<(), ()>(())
/// ```
///
/// After a transition, the value's `version()` is the new one, and a write needs the stored one. A
/// `Row` has both, however many transitions there were. It dereferences to the value, and makes its
/// transitions. No other value can be put in its place, which would be written over this row:
///
/// ```compile_fail,E0594
/// # use call_assistant::Timestamp;
/// # use call_assistant::webhook::sender::{Endpoint, Row};
/// # let mut row = Row::from(Endpoint::new(1, Timestamp::UNIX_EPOCH));
/// # let other = Endpoint::new(1, Timestamp::UNIX_EPOCH);
/// *row = other;
/// ```
///
/// When a write is stored, read the row again, or continue with `Row::from(write.value)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row<T> {
    stored: u32,
    pub(super) value: T,
}

/// The write of a row, on the condition that the stored row still has the version that
/// was read.
///
/// If it affects no row, another process was first: read the row again and repeat the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "store it, and check that one row was affected"]
#[non_exhaustive]
pub struct Write<T> {
    /// The version that the stored row must have.
    pub if_version: i32,
    /// What to store.
    pub value: T,
}

impl<T: Clone> Row<T> {
    pub(super) fn read(stored: u32, value: T) -> Self {
        Self { stored, value }
    }

    pub(super) fn changed(&self, version: u32) -> Option<Write<T>> {
        let write = || Write { if_version: signed(self.stored), value: self.value.clone() };
        (version != self.stored).then(write)
    }
}

/// The same for each value that has a version: its transitions, and the write.
macro_rules! row {
    ($value:ident $(<$generic:ident>)? {
        $($(#[$attribute:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*
    }) => {
        impl$(<$generic: Clone>)? $crate::webhook::sender::Row<$value$(<$generic>)?> {
            /// Returns the write to make. `None` if nothing has changed.
            #[must_use]
            pub fn write(
                &self,
            ) -> Option<$crate::webhook::sender::Write<$value$(<$generic>)?>> {
                self.changed(self.version())
            }

            $(
                #[doc = concat!("Does what [`", stringify!($value), "::", stringify!($name), "`] does.")]
                $(#[$attribute])*
                pub fn $name(&mut self, $($argument: $type),*) -> $result {
                    self.value.$name($($argument),*)
                }
            )*
        }

        /// The value has just been read.
        impl$(<$generic: Clone>)? From<$value$(<$generic>)?>
            for $crate::webhook::sender::Row<$value$(<$generic>)?>
        {
            fn from(value: $value$(<$generic>)?) -> Self {
                Self::read(value.version(), value)
            }
        }
    };
}

pub(super) use row;

impl<T> Deref for Row<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// What belongs to one delivery or endpoint was given to another.
///
/// A value knows the number of its row, and an [`Attempt`](super::Attempt) and a
/// [`Report`](super::Report) know the numbers of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MismatchError {
    /// An attempt of one delivery was given to another.
    #[error("the attempt is of another delivery")]
    Delivery,
    /// An endpoint, or what is sent to it, is not the one that the delivery has.
    #[error("the endpoint is another one")]
    Endpoint,
}

/// A number in a column that this crate cannot have stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}, not from 0 to {max}")]
#[non_exhaustive]
pub struct ColumnError {
    /// The column.
    pub field: &'static str,
    /// The number in it.
    pub value: i32,
    /// The largest number that is allowed.
    pub max: i32,
}

/// A stored text that this version does not know, such as a [`DeliveryStatus`](super::DeliveryStatus) of a
/// later version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {text:?}, which this version does not know")]
#[non_exhaustive]
pub struct UnknownTextError {
    /// What the text is for.
    pub field: &'static str,
    /// The text.
    pub text: String,
}

#[expect(clippy::expect_used, reason = "every way to make a number keeps it within i32::MAX")]
pub(super) fn signed(number: u32) -> i32 {
    i32::try_from(number).expect("at most i32::MAX")
}

pub(super) fn unsigned(field: &'static str, value: i32) -> Result<u32, ColumnError> {
    u32::try_from(value).map_err(|_| ColumnError { field, value, max: i32::MAX })
}

pub(super) fn small(field: &'static str, value: i16, max: u8) -> Result<u8, ColumnError> {
    let fits = u8::try_from(value).ok().filter(|value| *value <= max);
    fits.ok_or_else(|| ColumnError { field, value: value.into(), max: max.into() })
}

/// The largest version or generation: what an `integer` column holds.
const MAX_VERSION: u32 = i32::MAX.unsigned_abs();

/// Returns the version or generation after this one.
pub(super) fn next_version(version: u32) -> u32 {
    if version < MAX_VERSION { version.saturating_add(1) } else { 0 }
}

/// Returns the version or generation before this one.
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

/// Refuses any other number: its failure would end the delivery too early or too late.
pub(super) fn attempt<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    match u8::deserialize(deserializer)? {
        number @ 1..=MAX_ATTEMPTS => Ok(number),
        _ => Err(serde::de::Error::custom(format_args!("number is not from 1 to {MAX_ATTEMPTS}"))),
    }
}
