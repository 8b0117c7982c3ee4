//! Values that may occur at most once.

/// A value that a message has at most once, such as a header. Two values are ambiguous.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Occurs<T> {
    #[default]
    Absent,
    Once(T),
    Repeated,
}

impl<T> Occurs<T> {
    /// Adds a value.
    pub(crate) fn and(self, value: T) -> Self {
        match self {
            Self::Absent => Self::Once(value),
            Self::Once(_) | Self::Repeated => Self::Repeated,
        }
    }

    /// Returns the value, if it occurs exactly once.
    pub(crate) fn only(self) -> Option<T> {
        match self {
            Self::Once(value) => Some(value),
            Self::Absent | Self::Repeated => None,
        }
    }
}
