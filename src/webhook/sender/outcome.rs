//! What came of an attempt, and what it means.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use http::StatusCode;

/// What came of an attempt.
///
/// As text, in JSON and in a database's column, it is the three digits of a status or the word in
/// the variant's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The endpoint answered in time, with this status. Redirects are not followed: they are an
    /// answer like any other, and a failure.
    Answered(StatusCode),
    /// `timeout`: no response head within ten seconds.
    TimedOut,
    /// `refused`: the connection was refused, or the network had no way there.
    Refused,
    /// `reset`: the connection broke before the response head was complete, or what came was not
    /// HTTP.
    Reset,
    /// `dns`: the name did not resolve.
    Dns,
    /// `tls`: the handshake failed, or the certificate did not hold.
    Tls,
    /// `forbidden`: the name resolved to nothing but addresses that may not be called
    /// ([`Target::check`](super::Target::check)). The endpoint's fault, like a wrong address.
    Forbidden,
    /// `unsent`: no attempt was made, by a fault of our own: no socket left, no memory, shutting
    /// down. Nothing is charged to the endpoint.
    Unsent,
}

/// What an [`Outcome`] means for its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Any 2xx: the receiver has it.
    Acknowledged,
    /// 410: the receiver wants nothing more, ever.
    Gone,
    /// Everything else that happened to an attempt: redirects, 1xx, statuses of no known class,
    /// every fault of the network.
    Failed,
    /// There was no attempt.
    Unsent,
}

impl Outcome {
    /// What this means for the delivery.
    ///
    /// ```
    /// use call_assistant::webhook::sender::{Outcome, Verdict};
    /// use http::StatusCode;
    ///
    /// assert_eq!(Outcome::Answered(StatusCode::NO_CONTENT).verdict(), Verdict::Acknowledged);
    /// assert_eq!(Outcome::Answered(StatusCode::FOUND).verdict(), Verdict::Failed);
    /// assert_eq!(Outcome::Answered(StatusCode::GONE).verdict(), Verdict::Gone);
    /// assert_eq!(Outcome::Unsent.verdict(), Verdict::Unsent);
    /// ```
    #[must_use]
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Answered(status) if status.is_success() => Verdict::Acknowledged,
            Self::Answered(StatusCode::GONE) => Verdict::Gone,
            Self::Unsent => Verdict::Unsent,
            Self::Answered(_)
            | Self::TimedOut
            | Self::Refused
            | Self::Reset
            | Self::Dns
            | Self::Tls
            | Self::Forbidden => Verdict::Failed,
        }
    }

    /// Everything but an answer.
    const FAULTS: [Self; 7] = [
        Self::TimedOut,
        Self::Refused,
        Self::Reset,
        Self::Dns,
        Self::Tls,
        Self::Forbidden,
        Self::Unsent,
    ];

    fn text(&self) -> &str {
        match self {
            Self::Answered(status) => status.as_str(),
            Self::TimedOut => "timeout",
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::Dns => "dns",
            Self::Tls => "tls",
            Self::Forbidden => "forbidden",
            Self::Unsent => "unsent",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

/// A text that is not an [`Outcome`]: neither a status of three digits nor one of the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("outcome is neither a status of three digits nor a word for a fault")]
pub struct ParseOutcomeError;

impl FromStr for Outcome {
    type Err = ParseOutcomeError;

    fn from_str(text: &str) -> Result<Self, ParseOutcomeError> {
        match Self::FAULTS.into_iter().find(|fault| fault.text() == text) {
            Some(fault) => Ok(fault),
            None => StatusCode::from_bytes(text.as_bytes())
                .map(Self::Answered)
                .map_err(|_| ParseOutcomeError),
        }
    }
}

impl serde::Serialize for Outcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl<'de> serde::Deserialize<'de> for Outcome {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(|error: ParseOutcomeError| serde::de::Error::custom(error.to_string()))
    }
}
