//! Short texts.

mod error;
mod fixed;
mod occurs;

pub use error::{TextError, TextReason};
pub(crate) use error::{check_len, check_present, check_visible};
pub(crate) use fixed::FixedText;
pub(crate) use occurs::Occurs;
