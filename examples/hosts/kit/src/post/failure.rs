//! The reason for a missing response: one of the library's outcomes, and details.

use std::error::Error;
use std::io;

use call_assistant::webhook::sender::{FailureReason, Outcome};
use tokio_rustls::rustls::{self, CertificateError};

/// The end of an attempt without a response.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) outcome: Outcome,
    pub(super) reason: Option<FailureReason>,
}

impl From<Outcome> for Failure {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, reason: None }
    }
}

impl Failure {
    pub(super) fn new(outcome: Outcome, reason: FailureReason) -> Self {
        Self { outcome, reason: Some(reason) }
    }

    /// Creates the failure of a connection: the endpoint is unreachable, or this machine cannot try.
    pub(super) fn of_connecting(error: &io::Error, is_ipv4: bool) -> Self {
        use io::ErrorKind;
        let no_port = error.kind() == ErrorKind::AddrNotAvailable && is_ipv4;
        match error.kind() {
            // For IPv6, this is also how a machine says that it has none of it.
            _ if is_ours(error) || no_port => {
                Self::new(Outcome::Unsent, FailureReason::OutOfResources)
            }
            ErrorKind::TimedOut => Self::new(Outcome::TimedOut, FailureReason::NoConnection),
            ErrorKind::ConnectionReset => Self::new(Outcome::Reset, FailureReason::ConnectionReset),
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                Self::new(Outcome::Refused, FailureReason::Unreachable)
            }
            _ => Outcome::Refused.into(),
        }
    }

    /// Creates the failure of a TLS handshake.
    pub(super) fn of_handshake(error: &io::Error) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let reason = match inner {
            Some(rustls::Error::InvalidCertificate(error)) => Some(of_certificate(error)),
            Some(rustls::Error::InvalidMessage(_)) => Some(FailureReason::NotTls),
            Some(
                rustls::Error::AlertReceived(_)
                | rustls::Error::PeerIncompatible(_)
                | rustls::Error::PeerMisbehaved(_),
            ) => Some(FailureReason::HandshakeRefused),
            _ => of_io(error),
        };
        Self { outcome: Outcome::Tls, reason }
    }

    /// Creates the failure of a request without a response.
    pub(super) fn of_exchange(error: &hyper::Error) -> Self {
        let reason = if error.is_parse_too_large() {
            Some(FailureReason::HeadTooLarge)
        } else if error.is_parse() {
            Some(FailureReason::NotHttp)
        } else if error.is_incomplete_message() {
            Some(FailureReason::ClosedEarly)
        } else {
            error.source().and_then(|source| source.downcast_ref()).and_then(of_io)
        };
        Self { outcome: Outcome::Reset, reason }
    }
}

fn of_certificate(error: &CertificateError) -> FailureReason {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            FailureReason::CertificateExpired
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            FailureReason::CertificateNotYetValid
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            FailureReason::CertificateWrongHost
        }
        CertificateError::UnknownIssuer => FailureReason::CertificateUnknownIssuer,
        _ => FailureReason::CertificateInvalid,
    }
}

fn of_io(error: &io::Error) -> Option<FailureReason> {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Some(FailureReason::ClosedEarly),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            Some(FailureReason::ConnectionReset)
        }
        _ => None,
    }
}

/// Returns whether this machine has run out of a resource.
pub(super) fn is_ours(error: &io::Error) -> bool {
    // Linux's ENFILE, EMFILE and ENOBUFS, which have no kind of their own.
    error.kind() == io::ErrorKind::OutOfMemory
        || matches!(error.raw_os_error(), Some(23 | 24 | 105))
}
