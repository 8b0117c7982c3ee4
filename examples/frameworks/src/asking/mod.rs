//! Asking the API.
//!
//! Three things are the HTTP client's to do, in each of them: a time limit for the whole request, a
//! limit on how much of an answer is read, and no redirects, with which a key would travel to who
//! knows where.

use std::time::Duration;

use call_assistant::rest::UnsendableError;
use call_assistant::rest::client::ClientError;

pub mod reqwest_async;
pub mod reqwest_blocking;
pub mod ureq;

/// How long a request may take, the whole answer included.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The longest answer that is read, in bytes.
pub const LONGEST_ANSWER: usize = 16 * 1024 * 1024;

/// Why there is no answer. `E` is the HTTP client's own error.
#[derive(Debug)]
pub enum NotAnswered<E> {
    /// The service refused, or somebody else answered.
    Refused(ClientError),
    /// There was no answer, or not all of it.
    Lost(E),
    /// No address can carry this.
    Unsendable(UnsendableError),
}

impl<E> NotAnswered<E> {
    /// What `Retry` decides on. `None` where asking again makes no sense at all.
    #[must_use]
    pub fn error(&self) -> Option<ClientError> {
        match self {
            Self::Refused(error) => Some(error.clone()),
            Self::Lost(_) => Some(ClientError::no_response()),
            Self::Unsendable(_) => None,
        }
    }
}
