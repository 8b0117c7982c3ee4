//! Connecting to an endpoint: only to addresses that may be called, and over TLS.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use call_assistant::webhook::sender::{Outcome, Target};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use url::Host;

use super::Held;
use crate::support::tls;

/// Whose certificates are believed.
#[derive(Clone)]
pub(crate) struct Trust(TlsConnector);

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").finish_non_exhaustive()
    }
}

impl Trust {
    /// Mozilla's roots, and those of a PEM file besides.
    ///
    /// # Errors
    /// The file is not to be had, or not what it should be.
    pub(crate) fn new(file: Option<&Path>) -> Result<Self, String> {
        tls::connector(file).map(Self)
    }

    /// Speaks TLS on a connection to a target.
    ///
    /// # Errors
    /// The handshake failed, or the certificate does not hold for the target's host.
    pub(crate) async fn handshake(
        &self,
        target: &Target,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, Outcome> {
        let name = match target.url().host() {
            Some(Host::Domain(name)) => ServerName::try_from(name.to_owned()),
            Some(Host::Ipv4(address)) => Ok(ServerName::from(IpAddr::from(address))),
            Some(Host::Ipv6(address)) => Ok(ServerName::from(IpAddr::from(address))),
            None => return Err(Outcome::Dns),
        };
        let name = name.map_err(|_| Outcome::Tls)?;
        self.0.connect(name, stream).await.map_err(|_| Outcome::Tls)
    }
}

/// Connects to the first address that may be called and answers. An address that does not answer
/// gets its share of the time, so that the next one is tried as well.
///
/// # Errors
/// What came of the attempt: of the last address that could be tried.
pub(super) async fn connect(
    target: &Target,
    patience: Duration,
    held: &impl Held,
) -> Result<TcpStream, Outcome> {
    let resolved = resolve(target, held).await?;
    let allowed: Vec<SocketAddr> =
        resolved.into_iter().filter(|address| target.check(address.ip()).is_ok()).collect();
    let mut failed = None;
    let share =
        u32::try_from(allowed.len()).ok().and_then(|n| patience.checked_div(n)).unwrap_or(patience);
    for address in allowed {
        let outcome = match tokio::time::timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => of_connecting(address, &error),
            Err(_) => Outcome::TimedOut,
        };
        if outcome == Outcome::Unsent {
            // The next would fare no better; what has been found out stands.
            return Err(failed.unwrap_or(outcome));
        }
        failed = Some(outcome);
    }
    Err(failed.unwrap_or(Outcome::Forbidden))
}

async fn resolve(target: &Target, held: &impl Held) -> Result<Vec<SocketAddr>, Outcome> {
    let port = target.url().port_or_known_default().unwrap_or(443);
    let found: Vec<SocketAddr> = match target.url().host() {
        Some(Host::Ipv4(address)) => vec![(address, port).into()],
        Some(Host::Ipv6(address)) => vec![(address, port).into()],
        Some(Host::Domain(name)) => look_up(name.to_owned(), port, held.clone()).await?,
        None => Vec::new(),
    };
    if found.is_empty() { Err(Outcome::Dns) } else { Ok(found) }
}

/// Nobody can end a look-up: its thread keeps what is held for as long as it takes.
async fn look_up(name: String, port: u16, held: impl Held) -> Result<Vec<SocketAddr>, Outcome> {
    let thread = tokio::task::spawn_blocking(move || {
        let found = (name.as_str(), port).to_socket_addrs().map(Vec::from_iter);
        drop(held);
        found
    });
    match thread.await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) if !is_ours(&error) => Ok(Vec::new()),
        _ => Err(Outcome::Unsent),
    }
}

/// Whether it was the endpoint that could not be reached, or we that could not try.
fn of_connecting(address: SocketAddr, error: &io::Error) -> Outcome {
    match error.kind() {
        _ if is_ours(error) => Outcome::Unsent,
        // No port is left. For IPv6, this is also how a machine says that it has none of it.
        io::ErrorKind::AddrNotAvailable if address.is_ipv4() => Outcome::Unsent,
        io::ErrorKind::TimedOut => Outcome::TimedOut,
        io::ErrorKind::ConnectionReset => Outcome::Reset,
        _ => Outcome::Refused,
    }
}

/// Whether this machine has run out of something.
fn is_ours(error: &io::Error) -> bool {
    // Linux's ENFILE, EMFILE and ENOBUFS, which have no kind of their own.
    error.kind() == io::ErrorKind::OutOfMemory
        || matches!(error.raw_os_error(), Some(23 | 24 | 105))
}
