//! A value together with the version of its stored row.

use core::ops::{Deref, DerefMut};

use super::columns::signed;
use super::delivery::Delivery;
use super::endpoint::Endpoint;

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
/// `Row` has both, however many transitions there were. It dereferences to the value.
///
/// When a write is stored, read the row again, or continue with `Row::from(write.value)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row<T> {
    stored: u32,
    value: T,
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

/// The same for each value that has a version.
macro_rules! row {
    ($value:ty $(, $generic:ident)?) => {
        impl$(<$generic: Clone>)? $crate::webhook::sender::Row<$value> {
            /// Returns the write to make. `None` if nothing has changed.
            #[must_use]
            pub fn write(&self) -> Option<$crate::webhook::sender::Write<$value>> {
                self.changed(self.version())
            }
        }

        /// The value has just been read.
        impl$(<$generic: Clone>)? From<$value> for $crate::webhook::sender::Row<$value> {
            fn from(value: $value) -> Self {
                Self::read(value.version(), value)
            }
        }
    };
}

pub(super) use row;

row!(Delivery);
row!(Endpoint);

impl<T> Deref for Row<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Row<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
