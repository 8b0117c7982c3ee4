//! A value together with the version of its stored row.

use core::ops::Deref;
use core::time::Duration;

use super::alert::Alert;
use super::attempt::Attempt;
use super::columns::signed;
use super::delivery::Delivery;
use super::endpoint::{Endpoint, EndpointChange, Report};
use super::missed::MissedDeliveries;
use super::outcome::Outcome;
use super::status::{BeginError, RedeliverError};
use crate::Timestamp;

/// Holds a [`Delivery`], an [`Endpoint`] or a [`Recovery`](super::Recovery) as it was read, which
/// remembers the version of its stored row.
///
/// ```
/// # use call_assistant::Timestamp;
/// # use call_assistant::webhook::sender::{Delivery, Endpoint, Row};
/// # let now = Timestamp::UNIX_EPOCH;
/// # let read = Endpoint::new(now);
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
/// # let mut row = Row::from(Endpoint::new(Timestamp::UNIX_EPOCH));
/// # let other = Endpoint::new(Timestamp::UNIX_EPOCH);
/// *row = other;
/// ```
///
/// When a write is stored, read the row again, or continue with `Row::from(write.value)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row<T> {
    stored: u32,
    pub(super) value: T,
}

/// Describes the write of a row, on the condition that the stored row still has the version that
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

row!(Delivery {
    ///
    /// # Errors
    /// The same.
    begin(endpoint: &Endpoint, now: Timestamp) -> Result<Attempt, BeginError>;
    park(endpoint: &Endpoint, now: Timestamp) -> bool;
    finish(attempt: &Attempt, outcome: Outcome, now: Timestamp) -> Report;
    postpone(by: Duration, now: Timestamp) -> bool;
    ///
    /// # Errors
    /// The same.
    redeliver(endpoint: &Endpoint, now: Timestamp) -> Result<(), RedeliverError>;
});
row!(Endpoint {
    record(report: Report, now: Timestamp) -> EndpointChange;
    remind(now: Timestamp) -> Option<Alert>;
    pause(now: Timestamp) -> EndpointChange;
    delete(now: Timestamp) -> EndpointChange;
    moved(now: Timestamp) -> EndpointChange;
    enable(now: Timestamp) -> Option<MissedDeliveries>;
});

impl<T> Deref for Row<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
