//! One request at a time on one connection that is kept open, over TLS where the address says so.

use std::path::Path;
use std::time::Duration;

use call_assistant::rest::BaseUrl;
use http::header::{HOST, HeaderValue};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use host::tls;

/// The longest answer, in bytes. A page of a hundred calls has a few hundred kilobytes.
const LONGEST: usize = 16 * 1024 * 1024;

/// The way to one service.
pub(crate) struct Wire {
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    kept: Option<SendRequest<Empty<Bytes>>>,
    /// What drives the connection; it ends with this.
    drivers: JoinSet<()>,
}

impl Wire {
    /// # Errors
    /// There is no host in the address, or the certificates cannot be read.
    pub(crate) fn new(base: &BaseUrl, trust: Option<&Path>) -> Result<Self, String> {
        let uri: Uri = base.as_str().parse().map_err(|error| format!("--api: {error}"))?;
        let host = uri.host().ok_or("--api: there is no host in it")?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let secure = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let tls = if secure {
            let connector =
                tls::connector(trust).map_err(|error| format!("--trust-ca: {error}"))?;
            let name = ServerName::try_from(host.clone());
            Some((connector, name.map_err(|error| format!("--api: {error}"))?))
        } else {
            None
        };
        Ok(Self { host, port, tls, kept: None, drivers: JoinSet::new() })
    }

    /// Sends a request, and reads the whole answer, both within the limit. A redirect is an answer:
    /// the key goes nowhere else.
    ///
    /// # Errors
    /// There was no answer, or not all of it, in words.
    pub(crate) async fn send(
        &mut self,
        request: Request<()>,
        limit: Duration,
    ) -> Result<Response<Bytes>, String> {
        match tokio::time::timeout(limit, self.exchange(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            failed => {
                self.kept = None;
                self.drivers.abort_all();
                failed.unwrap_or_else(|_| Err(format!("no answer within {limit:?}")))
            }
        }
    }

    async fn exchange(&mut self, request: Request<()>) -> Result<Response<Bytes>, String> {
        let request = in_origin_form(request)?;
        // One that the service has closed in the meantime is as good as none.
        let mut sender = match self.kept.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.connect().await?,
        };
        sender.ready().await.map_err(|error| in_words(&error))?;
        let response = sender.send_request(request).await.map_err(|error| in_words(&error))?;
        let (head, body) = response.into_parts();
        let body =
            Limited::new(body, LONGEST).collect().await.map_err(|error| match error
                .is::<LengthLimitError>()
            {
                true => format!("the answer is longer than {LONGEST} bytes"),
                false => "the answer broke off".to_owned(),
            })?;
        self.kept = Some(sender);
        Ok(Response::from_parts(head, body.to_bytes()))
    }

    async fn connect(&mut self) -> Result<SendRequest<Empty<Bytes>>, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(|error| format!("cannot connect: {error}"))?;
        let _ = stream.set_nodelay(true);
        match self.tls.clone() {
            Some((connector, name)) => {
                let stream = connector.connect(name, stream).await;
                self.speak(stream.map_err(|error| format!("TLS: {error}"))?).await
            }
            None => self.speak(stream).await,
        }
    }

    async fn speak<S>(&mut self, stream: S) -> Result<SendRequest<Empty<Bytes>>, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| in_words(&error))?;
        self.drivers.spawn(async move {
            // The request's own end says what went wrong.
            let _ = connection.await;
        });
        // Those of connections that are over.
        while self.drivers.try_join_next().is_some() {}
        Ok(sender)
    }
}

/// What a server, other than a proxy, expects: the path alone, and the host beside it.
fn in_origin_form(request: Request<()>) -> Result<Request<Empty<Bytes>>, String> {
    let mut request = request.map(|()| Empty::new());
    let host = request.uri().authority().map(|authority| authority.as_str().to_owned());
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().map_err(|_| "the address cannot be sent".to_owned())?;
    let host = HeaderValue::try_from(host.unwrap_or_default());
    request.headers_mut().insert(HOST, host.map_err(|_| "the host cannot be sent".to_owned())?);
    Ok(request)
}

/// hyper's own words, which name no address and no header.
fn in_words(error: &hyper::Error) -> String {
    match error.is_incomplete_message() || error.is_closed() {
        true => "the connection was closed without an answer".to_owned(),
        false => format!("no answer: {error}"),
    }
}
