//! The result of an attempt.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use http::StatusCode;

use super::super::stored::ColumnError;
use crate::json::open_enum;

/// The result of an attempt, for [`Delivery::finish`](super::super::Delivery::finish).
///
/// ```
/// use call_assistant::webhook::sender::Outcome;
/// use http::StatusCode;
///
/// assert!(Outcome::Answered(StatusCode::NO_CONTENT).is_success());
/// assert!(!Outcome::Answered(StatusCode::FOUND).is_success()); // redirects are failures
///
/// // As text, in JSON and in a column: the three digits of a status, or a word.
/// assert_eq!(Outcome::Answered(StatusCode::NO_CONTENT).to_string(), "204");
/// assert_eq!("timeout".parse(), Ok(Outcome::TimedOut));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The endpoint answered in time with this status. Any 2xx delivers the event, and a 410 disables
    /// the endpoint. Any status except a 2xx or 410 is a failure. Do not follow redirects.
    Answered(StatusCode),
    /// `timeout`: no response head arrived within ten seconds.
    TimedOut,
    /// `refused`: the connection was refused, or there was no route to the host.
    Refused,
    /// `reset`: the connection failed before the response head was complete, or the response was not
    /// HTTP.
    Reset,
    /// `dns`: the name did not resolve.
    Dns,
    /// `tls`: the handshake failed, or the certificate was not valid.
    Tls,
    /// `forbidden`: the name resolved only to addresses that
    /// [`EndpointUrl::check`](super::super::EndpointUrl::check) refuses. This outcome is a failure of
    /// the endpoint.
    Forbidden,
    /// `unsent`: the sender sent no request for an internal reason, such as no free socket, no memory
    /// or a shutdown. Until the event is thirty days old ([`RETENTION`](super::super::RETENTION)), the
    /// outcome does not count, and the attempt is made again. From then on, the outcome counts as a
    /// failed attempt of the delivery, but never as a failure of the endpoint. A delivery therefore
    /// ends even if no request is ever sent.
    Unsent,
}

impl Outcome {
    /// Returns whether the outcome is a 2xx, which acknowledges the event.
    #[must_use]
    pub fn is_success(self) -> bool {
        matches!(self, Self::Answered(status) if status.is_success())
    }

    /// All outcomes without an HTTP status.
    const WORDS: [Self; 7] = [
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

impl FromStr for Outcome {
    type Err = ColumnError;

    fn from_str(text: &str) -> Result<Self, ColumnError> {
        let word = Self::WORDS.into_iter().find(|outcome| outcome.text() == text);
        let status = || StatusCode::from_bytes(text.as_bytes()).ok().map(Self::Answered);
        word.or_else(status)
            .ok_or_else(|| ColumnError::Text { field: "outcome", text: text.into() })
    }
}

impl serde::Serialize for Outcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl<'de> serde::Deserialize<'de> for Outcome {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

open_enum! {
    /// The reason why an attempt received no response, for a log. Only the
    /// [`Outcome`](super::super::Outcome) decides the next step.
    ///
    /// ```
    /// use call_assistant::webhook::sender::FailureReason;
    ///
    /// let reason = FailureReason::CertificateExpired; // of an attempt whose outcome is `tls`
    /// assert_eq!(serde_json::to_string(&reason)?, r#""certificate_expired""#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// A later version or a host may add reasons. A reader keeps an unknown reason unchanged. Each
    /// description below begins with the outcomes that the reason explains.
    pub enum FailureReason {
        /// `tls`: the certificate has expired.
        CertificateExpired = "certificate_expired",
        /// `tls`: the certificate is not valid yet.
        CertificateNotYetValid = "certificate_not_yet_valid",
        /// `tls`: the certificate is for other hosts.
        CertificateWrongHost = "certificate_wrong_host",
        /// `tls`: no trusted authority issued the certificate, or an intermediate certificate is
        /// missing.
        CertificateUnknownIssuer = "certificate_unknown_issuer",
        /// `tls`: the certificate is invalid for a reason that is not listed here.
        CertificateInvalid = "certificate_invalid",
        /// `tls`: the endpoint's answer is not TLS.
        NotTls = "not_tls",
        /// `tls`: the endpoint refused the handshake, or endpoint and sender have no common version or
        /// cipher.
        HandshakeRefused = "handshake_refused",
        /// `reset`: the response is not HTTP.
        NotHttp = "not_http",
        /// `reset`: the head of the response has more bytes or fields than the sender reads.
        HeadTooLarge = "head_too_large",
        /// `tls`, `reset`: the endpoint closed the connection before its answer.
        ClosedEarly = "closed_early",
        /// `tls`, `reset`: the endpoint, or an intermediary, reset the connection.
        ConnectionReset = "connection_reset",
        /// `refused`: there is no route to the host or its network.
        Unreachable = "unreachable",
        /// `timeout`: no connection was established in time.
        NoConnection = "no_connection",
        /// `timeout`: the TLS handshake was not complete in time.
        NoHandshake = "no_handshake",
        /// `timeout`: the connection was established, but no response arrived in time.
        NoResponse = "no_response",
        /// `unsent`: the sender was shutting down.
        Stopping = "stopping",
        /// `unsent`: the sender had no free memory, socket or port.
        OutOfResources = "out_of_resources",
    }
}
