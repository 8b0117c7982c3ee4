//! Why an attempt got no answer, in more detail than its outcome.

use crate::json::open_enum;

open_enum! {
    /// Says why an attempt got no response, for a log. It changes nothing: the
    /// [`Outcome`](super::Outcome) decides.
    ///
    /// ```
    /// use call_assistant::webhook::sender::FailureReason;
    ///
    /// let reason = FailureReason::CertificateExpired; // of an attempt whose outcome is `tls`
    /// assert_eq!(serde_json::to_string(&reason)?, r#""certificate_expired""#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// A later version, or a host, may add others: they are kept as they are.
    pub enum FailureReason {
        /// `tls`: the certificate has expired.
        CertificateExpired = "certificate_expired",
        /// `tls`: the certificate is not valid yet.
        CertificateNotYetValid = "certificate_not_yet_valid",
        /// `tls`: the certificate is for other hosts.
        CertificateWrongHost = "certificate_wrong_host",
        /// `tls`: no trusted authority issued the certificate, or a certificate between is missing.
        CertificateUnknownIssuer = "certificate_unknown_issuer",
        /// `tls`: something else is wrong with the certificate.
        CertificateInvalid = "certificate_invalid",
        /// `tls`: the endpoint answered with something that is not TLS.
        NotTls = "not_tls",
        /// `tls`: the endpoint refused the handshake, or no version or cipher is common to both.
        HandshakeRefused = "handshake_refused",
        /// `reset`: the response is not HTTP.
        NotHttp = "not_http",
        /// `reset`: the head of the response has more bytes or fields than the sender reads.
        HeadTooLarge = "head_too_large",
        /// `tls`, `reset`: the endpoint closed the connection before it had answered.
        ClosedEarly = "closed_early",
        /// `tls`, `reset`: the endpoint, or something in between, reset the connection.
        ConnectionReset = "connection_reset",
        /// `refused`: there is no route to the host or its network.
        Unreachable = "unreachable",
        /// `timeout`: no connection was made in time.
        NoConnection = "no_connection",
        /// `timeout`: the TLS handshake was not complete in time.
        NoHandshake = "no_handshake",
        /// `timeout`: the connection was made, and no response came in time.
        NoResponse = "no_response",
        /// `unsent`: the sender was stopping.
        Stopping = "stopping",
        /// `unsent`: the sender had no memory, socket or port left.
        OutOfResources = "out_of_resources",
    }
}
