use alloc::format;
use alloc::string::String;

use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http::{HeaderValue, Request, Uri};

use super::{ClientError, ResponseHead, error};
use crate::rest::{ApiKey, ApiRequest, BaseUrl, ParameterError};
use crate::text::TextError;

/// A client of the service. The client converts operations into requests, and responses into results.
///
/// ```
/// use call_assistant::rest::{GetAccount, ListCalls};
/// use call_assistant::rest::client::Client;
///
/// let client = Client::new("https://api.example.com", "service_live_kept-where-secrets-are")?;
/// let list = ListCalls::new();
/// let request = client.request(&list)?; // send it with any HTTP client
/// assert_eq!(request.uri(), "https://api.example.com/v1/calls?limit=50");
/// assert!(request.headers()["authorization"].is_sensitive());
///
/// # let response = http::Response::new(br#"{"data":[],"next_cursor":null,"has_more":false}"#);
/// let (head, body) = response.into_parts();
/// let page = client.read(&list, &head, body)?; // a `CallList`, because a list was asked for
/// assert_eq!(page.data.len(), 0);
///
/// // For an HTTP client that takes text. The key goes into a header, never into a URL.
/// assert_eq!(client.url(&GetAccount)?, "https://api.example.com/v1/account");
/// assert!(client.authorization().starts_with("Bearer service_live_"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The HTTP client must enforce a time limit for the whole request, and a limit on the length of a body.
/// The HTTP client must not follow redirects, because a redirect would send the key to another server.
#[derive(Clone, Debug)]
pub struct Client {
    base: BaseUrl,
    key: ApiKey,
}

/// The `User-Agent` of a request. A program can replace this header in the request.
const AGENT: &str = concat!("call-assistant/", env!("CARGO_PKG_VERSION"));

impl Client {
    /// Creates a client of the service at a base URL, with an API key.
    ///
    /// # Errors
    /// See [`BaseUrl::parse`] and [`ApiKey::parse`].
    pub fn new(base_url: &str, key: &str) -> Result<Self, TextError> {
        Ok(Self::from_parts(BaseUrl::parse(base_url)?, ApiKey::parse(key)?))
    }

    /// Creates a client from values that have been parsed already.
    #[must_use]
    pub fn from_parts(base: BaseUrl, key: ApiKey) -> Self {
        Self { base, key }
    }

    /// Returns the same client with another key. Before you use the new key, check the key with
    /// `GetAccount`.
    #[must_use]
    pub fn with_key(self, key: ApiKey) -> Self {
        Self { key, ..self }
    }

    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &ApiKey {
        &self.key
    }

    /// Creates the request of an operation. The header `Authorization` contains the key and is marked as
    /// sensitive. The request has no body. If an HTTP client requires a body, `request.map(|()| ...)`
    /// adds an empty body.
    ///
    /// # Errors
    /// Returns an error if the limit or the filter of a list is not valid, or if no URL can contain the
    /// cursor or the call's id.
    #[expect(clippy::expect_used, reason = "base URL, key and request are checked text")]
    pub fn request<R: ApiRequest>(&self, operation: &R) -> Result<Request<()>, ParameterError> {
        let mut request = Request::new(());
        *request.method_mut() = R::OPERATION.method();
        // `http` has read the base, and the rest is percent-encoded and within its 64 KiB.
        *request.uri_mut() = Uri::try_from(self.url(operation)?).expect("a URL");
        let mut authorization =
            HeaderValue::try_from(self.authorization()).expect("a key is visible ASCII");
        authorization.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, authorization);
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
        Ok(request)
    }

    /// Reads the response to [`request`](Self::request). The operation determines whether the result is
    /// an [`Account`](crate::model::Account), a [`Call`](crate::model::Call) or a
    /// [`CallList`](crate::model::CallList). The head is `&http::response::Parts` or a [`ResponseHead`].
    ///
    /// # Errors
    /// Returns an error if the service refused the request, or if the response does not answer the
    /// operation, for example because it contains another call.
    pub fn read<'h, R: ApiRequest>(
        &self,
        operation: &R,
        head: impl Into<ResponseHead<'h>>,
        body: &[u8],
    ) -> Result<R::Response, ClientError> {
        error::read(head.into(), body, |answer| operation.is_answered_by(answer))
    }

    /// Returns the URL of an operation, for an HTTP client that takes text. The method is `GET`.
    ///
    /// # Errors
    /// See [`request`](Self::request).
    pub fn url<R: ApiRequest>(&self, operation: &R) -> Result<String, ParameterError> {
        Ok(format!("{}{}", self.base, operation.target()?))
    }

    /// Returns the value of `Authorization`, for an HTTP client that takes text. The value is a secret.
    #[must_use]
    pub fn authorization(&self) -> String {
        format!("Bearer {}", self.key.reveal())
    }
}
