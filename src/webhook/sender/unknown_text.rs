//! Texts of a later version.

use alloc::string::String;

/// Says that this version does not know a stored text, such as a [`Status`](super::Status) of a
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
