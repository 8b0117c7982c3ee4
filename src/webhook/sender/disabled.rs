//! Why an endpoint is disabled.

use core::str::FromStr;

use serde::{Deserialize, Serialize};

use super::unknown_text::UnknownTextError;

/// Says why an endpoint is disabled.
///
/// ```
/// use call_assistant::webhook::sender::DisabledReason;
///
/// assert_eq!(DisabledReason::Failing.as_str(), "failing"); // in JSON and in a column
/// assert_eq!("gone".parse(), Ok(DisabledReason::Gone));
/// ```
///
/// A text of a later version is an error that names it, as with [`Status`](super::Status).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DisabledReason {
    /// It answered 410.
    Gone,
    /// [`FAILURES_TO_DISABLE`](super::FAILURES_TO_DISABLE) deliveries in a row failed for good.
    Failing,
    /// Its owner paused it.
    Paused,
    /// Its owner deleted it. It cannot be enabled again.
    Deleted,
}

impl DisabledReason {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::Gone, Self::Failing, Self::Paused, Self::Deleted];

    /// Tells whether it disables an endpoint by itself, without its owner.
    #[must_use]
    pub const fn is_automatic(self) -> bool {
        matches!(self, Self::Gone | Self::Failing)
    }

    /// Returns its text, in JSON and in a column.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
            Self::Paused => "paused",
            Self::Deleted => "deleted",
        }
    }
}

impl FromStr for DisabledReason {
    type Err = UnknownTextError;

    fn from_str(text: &str) -> Result<Self, UnknownTextError> {
        let known = Self::ALL.into_iter().find(|reason| reason.as_str() == text);
        known.ok_or_else(|| UnknownTextError { field: "disabled", text: text.into() })
    }
}
