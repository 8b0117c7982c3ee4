//! One request to the endpoint, with every byte of it chosen: an HTTP library would write the names of
//! header fields and the length of the body in its own way.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::Fault;
use crate::sent::Sent;
use host::tls;

/// How long an answer may take: 10 seconds, as the service waits.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest answer that is read, in bytes.
const LONGEST: u64 = 64 * 1024;

/// Where requests go.
#[derive(Clone)]
pub(crate) struct Endpoint {
    host: String,
    authority: String,
    port: u16,
    path: String,
    tls: Option<TlsConnector>,
}

impl Endpoint {
    /// # Errors
    /// The text is not an address of a web server, or the certificates cannot be read.
    pub(crate) fn new(url: &str, trust: Option<&Path>) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("URL: {error}"))?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) =
            (uri.scheme_str(), uri.authority())
        else {
            return Err("URL: expected http://HOST:PORT/PATH or https://".to_owned());
        };
        let tls = match scheme {
            "https" => {
                let config = tls::config(trust, b"http/1.1");
                Some(config.map_err(|error| format!("--trust-ca: {error}"))?)
            }
            _ => None,
        };
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            authority: authority.as_str().to_owned(),
            port: authority.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 }),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            tls: tls.map(|config| TlsConnector::from(Arc::new(config))),
        })
    }

    /// Sends a request on a connection of its own. Returns the status of the answer, or why there is none.
    pub(crate) async fn post(&self, sent: &Sent) -> Result<u16, String> {
        match tokio::time::timeout(PATIENCE, self.exchange(sent)).await {
            Ok(Ok(status)) => Ok(status),
            Ok(Err(error)) => Err(format!("no answer: {error}")),
            Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
        }
    }

    async fn exchange(&self, sent: &Sent) -> Result<u16, Fault> {
        let mut addresses = tokio::net::lookup_host((self.host.as_str(), self.port)).await?;
        let address: SocketAddr = addresses.next().ok_or("the name has no address")?;
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => self.converse(stream, sent).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone())?;
                self.converse(tls.connect(name, stream).await?, sent).await
            }
        }
    }

    async fn converse<S>(&self, stream: S, sent: &Sent) -> Result<u16, Fault>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let bytes = sent.bytes(&self.path, &self.authority);
        let (read, mut write) = tokio::io::split(stream);
        let mut answer = Vec::new();
        let mut read = read.take(LONGEST);
        // Who refuses early may not read the rest, and its answer counts.
        let writes = async {
            let _ = write.write_all(&bytes).await;
            let _ = write.flush().await;
            std::future::pending::<()>().await
        };
        let reads = async {
            while !answer.windows(4).any(|window| window == b"\r\n\r\n") {
                if read.read_buf(&mut answer).await? == 0 {
                    break;
                }
            }
            Ok::<_, Fault>(())
        };
        tokio::select! {
            read = reads => read?,
            () = writes => {}
        }
        let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let status = std::str::from_utf8(line).ok().and_then(|line| {
            line.starts_with("HTTP/1.").then(|| line.split(' ').nth(1)?.parse().ok())?
        });
        status.ok_or_else(|| "the connection ended without a status".into())
    }
}
