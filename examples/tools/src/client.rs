//! An HTTP client, over TLS for `https` addresses.

use std::error::Error;
use std::io;
use std::path::Path;

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Builder};
use hyper_util::rt::TokioExecutor;
use tokio_rustls::rustls;

use host::tls;

/// Sends requests. Clones share the connections.
#[derive(Clone, Debug)]
pub struct Client(legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl Client {
    /// Creates a client that trusts Mozilla's roots and the certificates of a PEM file. It keeps so many
    /// connections for the next request.
    ///
    /// # Errors
    /// The file cannot be read, or contains no usable certificate.
    pub fn new(trust: Option<&Path>, kept: usize) -> Result<Self, String> {
        let mut config = tls::config(trust, b"").map_err(|error| format!("--trust-ca: {error}"))?;
        // The connector says what it speaks.
        config.alpn_protocols.clear();
        let connector = HttpsConnectorBuilder::new().with_tls_config(config);
        let connector = connector.https_or_http().enable_http1().build();
        let mut client = Builder::new(TokioExecutor::new());
        Ok(Self(client.pool_max_idle_per_host(kept).build(connector)))
    }

    /// Sends a request, and reads the whole answer, so many bytes at most. A redirect is an answer:
    /// a key goes nowhere else.
    ///
    /// # Errors
    /// There was no complete response: the reason as text.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        longest: usize,
    ) -> Result<Response<Bytes>, String> {
        let answer = self.0.request(request).await.map_err(|error| in_words(&error))?;
        let (head, body) = answer.into_parts();
        match Limited::new(body, longest).collect().await {
            Ok(body) => Ok(Response::from_parts(head, body.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(format!("the response is longer than {longest} bytes"))
            }
            Err(_) => Err("the response is incomplete".to_owned()),
        }
    }
}

/// Returns the words of what went wrong, which name no address and no header.
fn in_words(error: &legacy::Error) -> String {
    let mut cause: &(dyn Error + 'static) = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
        if let Some(error) = cause.downcast_ref::<hyper::Error>()
            && (error.is_incomplete_message() || error.is_closed())
        {
            return "the connection was closed without a response".to_owned();
        }
    }
    match is_of_tls(cause) {
        true => format!("TLS: {cause}"),
        false if error.is_connect() => format!("cannot connect: {cause}"),
        false => format!("no response: {cause}"),
    }
}

/// Returns whether this is an error of TLS, also as the cause of one of a stream.
fn is_of_tls(error: &(dyn Error + 'static)) -> bool {
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.is::<rustls::Error>() || inner.is_some_and(|inner| is_of_tls(inner))
}
