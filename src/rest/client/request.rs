//! Asking.

use alloc::format;
use alloc::string::String;

use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderValue, Request, Uri};

use crate::rest::ApiKey;
use crate::rest::{ApiRequest, BaseUrl, UnsendableError};

/// Where a service is and the key to ask it with: what turns operations into requests.
///
/// Send the request with any HTTP client, and read what comes back with [`read`](super::read).
/// Three things are for that client to do: a timeout over the whole request; a limit on how much
/// of a body is read; and not to follow redirects, with which a key would travel to who knows
/// where.
///
/// ```
/// use call_assistant::Product;
/// use call_assistant::rest::{BaseUrl, GetAccount, ListCalls};
/// use call_assistant::rest::client::Client;
/// use call_assistant::rest::ApiKey;
///
/// let key = ApiKey::parse(&Product::default(), "service_live_keep-me-where-secrets-are-kept")?;
/// let client = Client::new(BaseUrl::parse("https://api.example.com")?, key);
///
/// let request = client.request(&ListCalls::new())?;
/// assert_eq!(request.uri(), "https://api.example.com/v1/calls?limit=50");
/// assert!(request.headers()["authorization"].is_sensitive());
///
/// // The same for an HTTP client that takes text. The key goes into a header, never into a URL.
/// assert_eq!(client.url(&GetAccount)?, "https://api.example.com/v1/account");
/// assert!(client.authorization().starts_with("Bearer service_live_"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    base: BaseUrl,
    key: ApiKey,
}

impl Client {
    /// A client of the service at this address.
    #[must_use]
    pub fn new(base: BaseUrl, key: ApiKey) -> Self {
        Self { base, key }
    }

    /// The same service with another key: what to do after a new one has been checked.
    #[must_use]
    pub fn with_key(self, key: ApiKey) -> Self {
        Self { key, ..self }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &ApiKey {
        &self.key
    }

    /// The request of an operation, with the key in `Authorization`, marked as sensitive. It has no
    /// body: `request.map(|()| ...)` gives it the empty one that the HTTP client wants.
    ///
    /// # Errors
    /// A call's id or a cursor is such that no address can carry it.
    pub fn request<E: ApiRequest>(&self, endpoint: &E) -> Result<Request<()>, UnsendableError> {
        let mut request = Request::new(());
        *request.method_mut() = E::OPERATION.method();
        *request.uri_mut() =
            Uri::try_from(self.url(endpoint)?).map_err(|_| UnsendableError::Address)?;
        let mut authorization =
            HeaderValue::try_from(self.authorization()).map_err(|_| UnsendableError::Address)?;
        authorization.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, authorization);
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        Ok(request)
    }

    /// The address of an operation, for an HTTP client that takes text. The method is `GET`.
    ///
    /// # Errors
    /// See [`request`](Self::request).
    pub fn url<E: ApiRequest>(&self, endpoint: &E) -> Result<String, UnsendableError> {
        Ok(format!("{}{}", self.base, endpoint.target()?))
    }

    /// The value of `Authorization`, for an HTTP client that takes text. It is a secret.
    #[must_use]
    pub fn authorization(&self) -> String {
        format!("Bearer {}", self.key.reveal())
    }
}
