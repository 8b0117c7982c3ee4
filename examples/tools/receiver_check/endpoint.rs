//! One request to the endpoint, with every byte of it chosen: an HTTP library would write the names of
//! header fields and the length of the body in its own way.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::{StatusCode, Uri};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader,
};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::Fault;
use crate::sent::Sent;
use host::tls;
use tools::client::connect;

/// How long an answer may take: 10 seconds, as the service waits.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most that is read of an answer: 64 KiB.
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
    /// Reads where requests go.
    ///
    /// # Errors
    /// The text is not an address of a web server, or the certificates cannot be read.
    pub(crate) fn new(url: &str, trust: Option<&Path>) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("URL: {error}"))?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) =
            (uri.scheme_str(), uri.authority())
        else {
            return Err("URL: expected http://HOST:PORT/PATH or https://".to_owned());
        };
        if authority.as_str().contains('@') {
            return Err("URL: no user and no password may be in it".to_owned());
        }
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
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await?;
        let stream = connect(&found.collect::<Vec<_>>(), PATIENCE).await?;
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
        // Who refuses early may not read the rest, and its answer counts.
        let writes = async {
            let _ = write.write_all(&bytes).await;
            let _ = write.flush().await;
            std::future::pending().await
        };
        tokio::select! {
            status = status(BufReader::new(read.take(LONGEST))) => status,
            never = writes => never,
        }
    }
}

/// Reads heads, each to its end, up to the first that is not of an interim answer.
async fn status(mut read: impl AsyncBufRead + Unpin) -> Result<u16, Fault> {
    loop {
        let first = line(&mut read).await?;
        while !line(&mut read).await?.is_empty() {}
        let mut words = first.split(|byte| *byte == b' ');
        let is_http = words.next().is_some_and(|version| version.starts_with(b"HTTP/1."));
        let status = words.next().and_then(|status| StatusCode::from_bytes(status).ok());
        let status = status.filter(|_| is_http).ok_or("the answer is not HTTP/1")?;
        if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(status.as_u16());
        }
    }
}

/// Reads a line, without its end.
async fn line(read: &mut (impl AsyncBufRead + Unpin)) -> Result<Vec<u8>, Fault> {
    let mut line = Vec::new();
    read.read_until(b'\n', &mut line).await?;
    match line.pop() {
        Some(b'\n') => Ok(line.strip_suffix(b"\r").unwrap_or(&line).to_vec()),
        _ => Err("the connection ended before a whole head had come".into()),
    }
}
