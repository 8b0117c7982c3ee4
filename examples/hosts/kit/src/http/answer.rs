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

use crate::http::serve::BodyError;
use crate::input::Bad;
use crate::store::Refused;
use crate::store::scope::NotForOwners;

/// A response.
pub type Answer = Response<Full<Bytes>>;

/// The reason for an error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The input is wrong.
    Bad(Bad),
    /// The store refuses.
    Refused(Refused),
    /// The body was not received.
    Body(BodyError),
    /// The process is not ready: why, for whoever asks.
    NotReady(String),
    /// The request was not complete when shutdown of this host was requested.
    Stopping,
    /// The path does not exist.
    NoSuchPath,
    /// The path exists for other methods.
    Method(String),
    /// The request does not come from the dashboard's own page.
    Foreign,
    /// An operator's token is missing.
    NoToken,
    /// A token is no operator's.
    WrongToken,
    /// The login of an owner's page is missing, or its link has expired or was revoked.
    NoLink,
    /// An owner asks for what is the operators'.
    NotForOwners,
    /// A login that only reads asks for a change.
    OnlyReads,
    /// A token or a link is wrong, and too many wrong ones came from there; the seconds to wait.
    TooManyTries(u64),
    /// An owner has changed too much in this minute: what, and the seconds to wait.
    TooOften(String, u64),
    /// An owner has so many requests under way.
    TooManyAtOnce(usize),
}

impl From<Bad> for Error {
    fn from(bad: Bad) -> Self {
        Self::Bad(bad)
    }
}

impl From<NotForOwners> for Error {
    fn from(_: NotForOwners) -> Self {
        Self::NotForOwners
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
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
        let (status, code, message, field) = match self {
            Self::Bad(bad) | Self::Refused(Refused::Bad(bad)) => {
                (StatusCode::BAD_REQUEST, "invalid_input", bad.to_string(), Some(bad.field))
            }
            Self::Refused(Refused::NotFound(what)) => {
                (StatusCode::NOT_FOUND, "not_found", format!("{what} not found"), None)
            }
            Self::Refused(Refused::Conflict(message)) => {
                (StatusCode::CONFLICT, "conflict", message, None)
            }
            Self::Refused(Refused::Plan(error)) => {
                (StatusCode::FORBIDDEN, "not_in_plan", error.to_string(), None)
            }
            Self::Refused(Refused::Unfit(message)) => {
                (StatusCode::SERVICE_UNAVAILABLE, "key_ring", message, None)
            }
            Self::Refused(Refused::Unavailable(_)) => {
                return unavailable("the store does not answer, or has failed; try again");
            }
            Self::Refused(Refused::Broken(what, _)) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "store_broken", what.to_owned(), None)
            }
            Self::NotReady(why) => return unavailable(&why),
            Self::Body(error) => {
                let (status, message) = match error {
                    BodyError::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
                    BodyError::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body took too long"),
                    BodyError::Broken => (StatusCode::BAD_REQUEST, "the body is incomplete"),
                };
                (status, "invalid_body", message.to_owned(), None)
            }
            Self::Stopping => {
                let message = "the service is shutting down; nothing was done".to_owned();
                (StatusCode::SERVICE_UNAVAILABLE, "stopping", message, None)
            }
            Self::NoSuchPath => {
                (StatusCode::NOT_FOUND, "not_found", "path not found".to_owned(), None)
            }
            Self::Method(allowed) => {
                let message = format!("this path allows {allowed}");
                let mut answer =
                    error(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", &message, None);
                if let Ok(allowed) = HeaderValue::try_from(allowed) {
                    answer.headers_mut().insert(ALLOW, allowed);
                }
                return answer;
            }
            Self::Foreign => {
                let message =
                    "the dashboard accepts requests only from its own page and from this machine";
                (StatusCode::FORBIDDEN, "forbidden", message.to_owned(), None)
            }
            Self::NotForOwners => {
                let message = "this is for operators, not for the owner of an account".to_owned();
                (StatusCode::FORBIDDEN, "forbidden", message, None)
            }
            Self::OnlyReads => {
                let message = "this login only reads".to_owned();
                (StatusCode::FORBIDDEN, "forbidden", message, None)
            }
            Self::NoToken | Self::WrongToken | Self::NoLink => {
                let message = match self {
                    Self::WrongToken => {
                        "this is no operator's token: expected the whole text of --operator-token-file or \
                         OPERATOR_TOKEN; of a line name:role:token, the token alone"
                    }
                    Self::NoLink => "this link has expired or was revoked: ask for another one",
                    _ => {
                        "missing an operator's token: log in with it, or send it as a bearer token or a password"
                    }
                };
                let mut answer = error(StatusCode::UNAUTHORIZED, "unauthorized", message, None);
                // One line for each: a browser that finds both in one asks for no password.
                for scheme in ["Basic realm=\"dashboard\"", "Bearer"] {
                    let scheme = HeaderValue::from_static(scheme);
                    answer.headers_mut().append(WWW_AUTHENTICATE, scheme);
                }
                return answer;
            }
            Self::TooManyTries(seconds) => {
                return too_many("too_many_tries", "too many wrong tokens or links", seconds);
            }
            Self::TooOften(what, seconds) => return too_many("too_often", &what, seconds),
            Self::TooManyAtOnce(most) => {
                let what = format!("{most} requests of this account wait, and that is the limit");
                let mut answer = too_many("too_often", &what, 1);
                // Others need the connection.
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                return answer;
            }
        };
        error(status, code, &message, field.filter(|field| !field.is_empty()))
    }
}

fn unavailable(message: &str) -> Answer {
    let mut answer = error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message, None);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

fn too_many(code: &str, what: &str, seconds: u64) -> Answer {
    let message = format!("{what}; try again in {seconds} s");
    let mut answer = error(StatusCode::TOO_MANY_REQUESTS, code, &message, None);
    answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    answer
}

fn error(status: StatusCode, code: &str, message: &str, field: Option<String>) -> Answer {
    let mut error = json!({ "code": code, "message": message });
    if let Some(field) = field {
        error["field"] = field.into();
    }
    json(status, &json!({ "error": error }))
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
pub(crate) fn page(html: &'static str, policy: &HeaderValue) -> Answer {
    let mut answer = text(StatusCode::OK, "text/html; charset=utf-8", html.to_owned());
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
    let mut answer = text(StatusCode::NOT_MODIFIED, "application/json", String::new());
    answer.headers_mut().insert(ETAG, tag);
    answer
}

/// Returns a text as a response.
pub fn text(status: StatusCode, content_type: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
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
