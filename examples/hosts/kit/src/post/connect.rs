//! Connections to endpoints: only to allowed addresses, and over TLS.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use call_assistant::webhook::sender::{EndpointUrl, FailureReason, Outcome};
use tokio::net::TcpStream;
use tokio::task::JoinError;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use url::Host;

use super::Held;
use super::failure::{Failure, is_ours};
use crate::tls;

/// The trusted CA certificates.
#[derive(Clone)]
pub(super) struct Trust(TlsConnector);

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").finish_non_exhaustive()
    }
}

impl Trust {
    /// Reads Mozilla's roots and the certificates of a PEM file.
    ///
    /// # Errors
    /// The file cannot be read, or contains no usable certificate.
    pub(super) fn new(file: Option<&Path>) -> Result<Self, String> {
        let config = tls::config(file, b"http/1.1")?;
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Makes a TLS connection to a target.
    ///
    /// # Errors
    /// The handshake failed, or the certificate does not hold for the target's host.
    pub(super) async fn handshake(
        &self,
        target: &EndpointUrl,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, Failure> {
        let name = match target.url().host() {
            Some(Host::Domain(name)) => ServerName::try_from(name.to_owned()),
            Some(Host::Ipv4(address)) => Ok(ServerName::from(IpAddr::from(address))),
            Some(Host::Ipv6(address)) => Ok(ServerName::from(IpAddr::from(address))),
            None => return Err(Outcome::Dns.into()),
        };
        let name = name.map_err(|_| Failure::from(Outcome::Tls))?;
        self.0.connect(name, stream).await.map_err(|error| Failure::of_handshake(&error))
    }
}

/// Connects to the first allowed address that answers. Each address gets its share of the time, so
/// that the next one is tried too.
///
/// # Errors
/// The failure of the last address that was tried, or could not be.
pub(super) async fn connect(
    target: &EndpointUrl,
    patience: Duration,
    held: &impl Held,
) -> Result<TcpStream, Failure> {
    let resolved = resolve(target, held).await?;
    let allowed: Vec<SocketAddr> =
        resolved.into_iter().filter(|address| target.check(address.ip()).is_ok()).collect();
    let stream = first(&allowed, patience, TcpStream::connect).await?;
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Connects to the first address that answers. An address that this machine could not try might have answered: then
/// the failures of those before it are nobody's.
async fn first<S>(
    addresses: &[SocketAddr],
    patience: Duration,
    connect: impl AsyncFn(SocketAddr) -> io::Result<S>,
) -> Result<S, Failure> {
    let mut failed = Failure::from(Outcome::Forbidden);
    let share = u32::try_from(addresses.len()).ok().and_then(|n| patience.checked_div(n));
    for address in addresses {
        failed = match tokio::time::timeout(share.unwrap_or(patience), connect(*address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => Failure::of_connecting(&error, address.is_ipv4()),
            Err(_) => Failure::new(Outcome::TimedOut, FailureReason::NoConnection),
        };
        if failed.outcome == Outcome::Unsent {
            // The next address would fail in the same way.
            break;
        }
    }
    Err(failed)
}

async fn resolve(target: &EndpointUrl, held: &impl Held) -> Result<Vec<SocketAddr>, Failure> {
    let port = target.url().port_or_known_default().unwrap_or(443);
    let found: Vec<SocketAddr> = match target.url().host() {
        Some(Host::Ipv4(address)) => vec![(address, port).into()],
        Some(Host::Ipv6(address)) => vec![(address, port).into()],
        Some(Host::Domain(name)) => look_up(name.to_owned(), port, held.clone()).await?,
        None => Vec::new(),
    };
    if found.is_empty() { Err(Outcome::Dns.into()) } else { Ok(found) }
}

async fn look_up(name: String, port: u16, held: impl Held) -> Result<Vec<SocketAddr>, Failure> {
    let look_up = move || (name.as_str(), port).to_socket_addrs().map(Vec::from_iter);
    match on_thread(held, look_up).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) if !is_ours(&error) => Ok(Vec::new()),
        _ => Err(Failure::new(Outcome::Unsent, FailureReason::OutOfResources)),
    }
}

/// Runs what cannot be ended on a thread, which keeps what is held for as long as it takes: also
/// when nobody waits for it any more.
pub async fn on_thread<T: Send + 'static>(
    held: impl Held,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let thread = tokio::task::spawn_blocking(move || {
        let done = run();
        drop(held);
        done
    });
    thread.await
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};
    use std::time::Duration;

    use call_assistant::webhook::sender::Outcome;

    use super::first;

    // D-57: an address that could not be tried for lack of a socket is not charged to the endpoint, whatever became of
    // the addresses before it.
    #[tokio::test]
    async fn what_this_machine_could_not_try_is_unsent() {
        let (refused, unreachable) = (ErrorKind::ConnectionRefused, ErrorKind::NetworkUnreachable);
        let no_file = || io::Error::from_raw_os_error(24);
        for (row, errors, outcome) in [
            ("the second", [unreachable.into(), no_file()], Outcome::Unsent),
            ("the first", [no_file(), refused.into()], Outcome::Unsent),
            ("none", [unreachable.into(), refused.into()], Outcome::Refused),
        ] {
            let addresses = [([0, 0, 0, 0, 0, 0, 0, 1], 443).into(), ([192, 0, 2, 1], 443).into()];
            let errors = std::sync::Mutex::new(Vec::from(errors).into_iter());
            let connect = async |_| {
                let mut errors = errors.lock().map_err(|_| ErrorKind::Other)?;
                Err::<(), _>(errors.next().unwrap_or(ErrorKind::Other.into()))
            };
            let failed = first(&addresses, Duration::from_secs(10), connect).await;
            assert_eq!(failed.err().map(|failure| failure.outcome), Some(outcome), "{row}");
        }
    }
}
