//! One request to the endpoint, with every byte of it chosen: an HTTP library would write the names of
//! header fields and the length of the body in its own way.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite,
    AsyncWriteExt as _, BufReader,
};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::Fault;
use crate::sent::Sent;
use tools::check::http::Place;
use tools::client::connect;

/// How long an answer may take: 10 seconds, as the service waits.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most that is read of an answer: 64 KiB.
const LONGEST: u64 = 64 * 1024;

/// The place where requests go.
#[derive(Clone)]
pub(crate) struct Endpoint(Place);

impl Endpoint {
    /// Reads where requests go.
    ///
    /// # Errors
    /// The text is not an address of a web server, or the certificates cannot be read.
    pub(crate) fn new(url: &str, trust: Option<&Path>) -> Result<Self, String> {
        Place::new(url, trust).map(Self)
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
        let Place { host, port, tls, .. } = &self.0;
        let found = tokio::net::lookup_host((host.as_str(), *port)).await?;
        let stream = connect(&found.collect::<Vec<_>>(), PATIENCE).await?;
        stream.set_nodelay(true)?;
        match tls {
            None => self.converse(stream, sent).await,
            Some(tls) => {
                let (tls, name) = (TlsConnector::from(Arc::clone(tls)), host.clone());
                self.converse(tls.connect(ServerName::try_from(name)?, stream).await?, sent).await
            }
        }
    }

    async fn converse<S>(&self, stream: S, sent: &Sent) -> Result<u16, Fault>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let bytes = sent.bytes(&self.0.target, &self.0.authority);
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
