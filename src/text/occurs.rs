//! What may be given once.

/// A value that a message gives once at most, such as a header: which of two is meant cannot be
/// told.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Occurs<T> {
    #[default]
    Absent,
    Once(T),
    Repeated,
}

impl<T> Occurs<T> {
    /// Counts one more.
    pub(crate) fn and(self, value: T) -> Self {
        match self {
            Self::Absent => Self::Once(value),
            Self::Once(_) | Self::Repeated => Self::Repeated,
        }
    }

    /// Returns the value that is given once.
    pub(crate) fn only(self) -> Option<T> {
        match self {
            Self::Once(value) => Some(value),
            Self::Absent | Self::Repeated => None,
        }
    }
}
