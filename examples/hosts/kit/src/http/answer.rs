//! Responses of the dashboard and of monitoring: JSON, pages, and errors that say what to do.

use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, REFERRER_POLICY,
    RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use serde::Serialize;
use serde_json::json;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::http::gzip::Constant;
use crate::http::serve::BodyError;
use crate::input::Bad;
use crate::store::Refused;
use crate::store::scope::NotForOwners;

/// A response.
pub type Answer = Response<Full<Bytes>>;

/// A response, or the reason for an error response.
pub type Answered = Result<Answer, Error>;

/// The reason for an error response. Its text is the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The input is wrong.
    #[error(transparent)]
    Bad(#[from] Bad),
    /// The store refuses.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The body was not received.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The process is not ready: why, for whoever asks.
    #[error("{0}")]
    NotReady(String),
    /// The request was not complete when shutdown of this host was requested.
    #[error("the service is shutting down; nothing was done")]
    Stopping,
    /// The path does not exist.
    #[error("path not found")]
    NoSuchPath,
    /// The path exists for other methods.
    #[error("this path allows {0}")]
    Method(String),
    /// The request does not come from the dashboard's own page.
    #[error("the dashboard accepts requests only from its own page and from this machine")]
    Foreign,
    /// An operator's token is missing.
    #[error(
        "missing an operator's token: log in with it, or send it as a bearer token or a password"
    )]
    NoToken,
    /// A token is no operator's.
    #[error(
        "the operator's token is wrong: expected a token of --operator-token-file or \
         OPERATOR_TOKEN; from a line name:role:token, send only the token"
    )]
    WrongToken,
    /// The login of an owner's page is missing, or its link has expired or was revoked.
    #[error("this link has expired or was revoked: ask for a new link")]
    NoLink,
    /// An owner asks for what is the operators'.
    #[error(transparent)]
    NotForOwners(#[from] NotForOwners),
    /// A login that only reads asks for a change.
    #[error("this login can read, and can change nothing")]
    OnlyReads,
    /// A token or a link is wrong, and too many wrong ones came from there; the seconds to wait.
    #[error("too many wrong tokens or links; try again in {0} s")]
    TooManyTries(u64),
    /// An owner has changed too much in this minute: what, and the seconds to wait.
    #[error("{0}; try again in {1} s")]
    TooOften(String, u64),
    /// An owner has so many requests under way.
    #[error("{0} requests of this account are waiting, which is the limit; try again in 1 s")]
    TooManyAtOnce(usize),
}

impl Error {
    /// Returns why the service fails: for its log, since the response may not tell.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Refused(Refused::Unavailable(why) | Refused::Broken(_, why))
            | Self::NotReady(why) => Some(why),
            Self::Stopping => Some("shutdown was requested"),
            _ => None,
        }
    }

    /// Returns the error as a response.
    pub fn answer(self) -> Answer {
        let (status, code) = self.status();
        let mut error = json!({ "code": code, "message": self.to_string() });
        if let Self::Bad(bad) | Self::Refused(Refused::Bad(bad)) = &self
            && !bad.field.is_empty()
        {
            error["field"] = bad.field.as_str().into();
        }
        let mut answer = json(status, &json!({ "error": error }));
        let headers = answer.headers_mut();
        let again = match &self {
            Self::TooManyTries(seconds) | Self::TooOften(_, seconds) => Some(*seconds),
            Self::TooManyAtOnce(_) | Self::NotReady(_) | Self::Refused(Refused::Unavailable(_)) => {
                Some(1)
            }
            _ => None,
        };
        headers.extend(again.map(|seconds| (RETRY_AFTER, seconds.into())));
        match self {
            Self::Method(allowed) => {
                headers.extend(HeaderValue::try_from(allowed).map(|allowed| (ALLOW, allowed)));
            }
            // One line for each: a browser that finds both in one asks for no password.
            Self::NoToken | Self::WrongToken | Self::NoLink => {
                for scheme in ["Basic realm=\"dashboard\"", "Bearer"] {
                    headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(scheme));
                }
            }
            // Others need the connection.
            Self::TooManyAtOnce(_) => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        answer
    }

    /// Returns the status and the code.
    const fn status(&self) -> (StatusCode, &'static str) {
        use StatusCode as Is;
        match self {
            Self::Refused(refused) => match refused {
                Refused::Bad(_) => (Is::BAD_REQUEST, "invalid_input"),
                Refused::NotFound(_) => (Is::NOT_FOUND, "not_found"),
                Refused::Conflict(_) => (Is::CONFLICT, "conflict"),
                Refused::Plan(_) => (Is::FORBIDDEN, "not_in_plan"),
                Refused::Unfit(_) => (Is::SERVICE_UNAVAILABLE, "key_ring"),
                Refused::Unavailable(_) => (Is::SERVICE_UNAVAILABLE, "unavailable"),
                Refused::Broken(..) => (Is::INTERNAL_SERVER_ERROR, "store_broken"),
            },
            Self::Bad(_) => (Is::BAD_REQUEST, "invalid_input"),
            Self::NotReady(_) => (Is::SERVICE_UNAVAILABLE, "unavailable"),
            Self::Body(BodyError::TooLarge) => (Is::PAYLOAD_TOO_LARGE, "invalid_body"),
            Self::Body(BodyError::TooSlow) => (Is::REQUEST_TIMEOUT, "invalid_body"),
            Self::Body(BodyError::Broken) => (Is::BAD_REQUEST, "invalid_body"),
            Self::Stopping => (Is::SERVICE_UNAVAILABLE, "stopping"),
            Self::NoSuchPath => (Is::NOT_FOUND, "not_found"),
            Self::Method(_) => (Is::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Self::Foreign | Self::NotForOwners(_) | Self::OnlyReads => (Is::FORBIDDEN, "forbidden"),
            Self::NoToken | Self::WrongToken | Self::NoLink => (Is::UNAUTHORIZED, "unauthorized"),
            Self::TooManyTries(_) => (Is::TOO_MANY_REQUESTS, "too_many_tries"),
            Self::TooOften(..) | Self::TooManyAtOnce(_) => (Is::TOO_MANY_REQUESTS, "too_often"),
        }
    }
}

/// Returns a value with status 200.
pub fn ok(value: &impl Serialize) -> Answer {
    json(StatusCode::OK, value)
}

/// Builds something large: other requests do not wait for this thread meanwhile.
pub fn large<T>(build: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(build),
        _ => build(),
    }
}

/// Returns a value with status 201.
pub fn created(value: &impl Serialize) -> Answer {
    json(StatusCode::CREATED, value)
}

/// Returns a value as a response.
pub fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    // What is shown has names for keys and nothing that JSON has no form for.
    text(status, "application/json", serde_json::to_string(value).unwrap_or_default())
}

/// Returns the page. Only its own scripts run, and it loads nothing from elsewhere.
pub(crate) fn page(html: &'static Constant, policy: &HeaderValue) -> Answer {
    let mut answer = text(StatusCode::OK, "text/html; charset=utf-8", html.text.as_str());
    answer.extensions_mut().insert(html);
    answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy.clone());
    answer
}

/// Returns a value that the page polls, with a tag for conditional requests.
pub(crate) fn tagged(value: &impl Serialize, tag: HeaderValue) -> Answer {
    let mut answer = json(StatusCode::OK, value);
    answer.headers_mut().insert(ETAG, tag);
    answer
}

/// Returns status 304: nothing has changed.
pub(crate) fn unchanged(tag: HeaderValue) -> Answer {
    let mut answer = text(StatusCode::NOT_MODIFIED, "application/json", "");
    answer.headers_mut().insert(ETAG, tag);
    answer
}

/// Returns a text as a response.
pub fn text(status: StatusCode, content_type: &'static str, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        // Secrets are in some of these answers.
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}
