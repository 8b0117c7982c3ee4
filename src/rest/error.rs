use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use http::StatusCode;
use serde::de::DeserializeOwned;
use serde::{Deserializer, Serialize, Serializer};

use crate::id::{MAX_ID_LEN, RequestId};
use crate::json::{
    self, FromJson, ParseError, RawJson, Tracker, deserialize, json_object, open_enum,
};
use crate::secret::one_line;

open_enum! {
    /// The code of an error. Clients branch on the code, never on the message.
    ///
    /// If this version does not know a code, the code's text is kept. Therefore a service can add codes
    /// without breaking clients.
    pub enum ErrorCode {
        /// An invalid path or query parameter. The message names the parameter.
        InvalidParameter = "invalid_parameter",
        /// A cursor that was altered, truncated, or made by an incompatible paginator.
        InvalidCursor = "invalid_cursor",
        /// A missing or unusable key.
        InvalidCredentials = "invalid_credentials",
        /// An account without an active subscription.
        SubscriptionInactive = "subscription_inactive",
        /// A key without the operation's scope.
        InsufficientScope = "insufficient_scope",
        /// A valid key of an account whose plan does not include the REST API.
        PlanUpgradeRequired = "plan_upgrade_required",
        /// An account that is scheduled for deletion.
        AccountClosed = "account_closed",
        /// A resource that this account does not have.
        ResourceNotFound = "resource_not_found",
        /// A credential over its request rate.
        RateLimitExceeded = "rate_limit_exceeded",
        /// A failure of the service.
        InternalError = "internal_error",
        /// A method that the path does not allow.
        MethodNotAllowed = "method_not_allowed",
    }
}

open_enum! {
    /// A group of error codes: see [`ErrorCode`].
    pub enum ErrorType {
        /// A request that is not valid.
        InvalidRequest = "invalid_request",
        /// A credential that is not accepted.
        AuthenticationError = "authentication_error",
        /// A credential that is accepted, but not permitted to make this request.
        PermissionError = "permission_error",
        /// Too many requests.
        RateLimitError = "rate_limit_error",
        /// A failure of the service.
        ApiError = "api_error",
    }
}

impl ErrorCode {
    /// Returns the status of this code; `None` if this version does not know the code.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        self.row().map(|(status, ..)| status)
    }

    /// Returns the type of this code; `None` if this version does not know the code.
    #[must_use]
    pub fn error_type(&self) -> Option<ErrorType> {
        self.row().map(|(_, error_type, _)| error_type)
    }

    fn default_message(&self) -> &'static str {
        self.row().map_or("The request was refused.", |(.., message)| message)
    }

    /// Returns the status, the type and the message of a code.
    // The specification has no code for other methods (D-3), and leaves the type of three codes open:
    // the credential is valid, and something else is missing (D-2).
    fn row(&self) -> Option<(StatusCode, ErrorType, &'static str)> {
        use ErrorType::{
            ApiError, AuthenticationError, InvalidRequest, PermissionError, RateLimitError,
        };
        let (status, error_type, message) = match self {
            Self::InvalidParameter => (400, InvalidRequest, "A parameter is invalid."),
            Self::InvalidCursor => (400, InvalidRequest, "The cursor is invalid."),
            Self::InvalidCredentials => {
                (401, AuthenticationError, "The API key is missing or cannot be used.")
            }
            Self::SubscriptionInactive => {
                (402, PermissionError, "The account has no active subscription.")
            }
            Self::InsufficientScope => {
                (403, PermissionError, "The API key lacks the scope that this endpoint requires.")
            }
            Self::PlanUpgradeRequired => {
                (403, PermissionError, "The account's plan does not include the REST API.")
            }
            Self::AccountClosed => (403, PermissionError, "The account is scheduled for deletion."),
            Self::ResourceNotFound => {
                (404, InvalidRequest, "There is no such resource in this account.")
            }
            Self::RateLimitExceeded => {
                (429, RateLimitError, "Too many requests with this credential.")
            }
            Self::InternalError => (500, ApiError, "The service failed to answer."),
            Self::MethodNotAllowed => (405, InvalidRequest, "This method is not allowed here."),
            Self::Other(_) => return None,
        };
        Some((StatusCode::from_u16(status).ok()?, error_type, message))
    }
}

/// An error as the API reports it.
///
/// ```
/// use call_assistant::rest::{ApiError, ErrorCode};
/// use call_assistant::id::RequestId;
///
/// let error = ApiError::new(ErrorCode::AccountClosed, RequestId::parse("req_1").unwrap());
/// assert_eq!(
///     String::from_utf8(error.to_json()).unwrap(),
///     r#"{"error":{"type":"permission_error","code":"account_closed","message":"The account is scheduled for deletion.","request_id":"req_1"}}"#,
/// );
/// assert_eq!(ApiError::from_json(&error.to_json()), Ok(error));
/// ```
///
/// `Display` and `Debug` write one line for a log, with a bounded length and no text that looks like a
/// secret. [`from_json`](Self::from_json) requires only the code. If the message is missing or cannot be
/// read, the code's default message replaces the message. If the `request_id` is not valid or looks like a
/// secret, `None` replaces the id. All other texts are kept as received.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiError {
    /// The group of the code.
    pub error_type: Option<ErrorType>,
    /// The code to branch on.
    pub code: ErrorCode,
    /// The text to show to a person. Its wording may change at any time.
    pub message: String,
    /// The id of the request, to quote to support.
    pub request_id: Option<RequestId>,
}

impl ApiError {
    /// Creates the error of a code, with the code's type and default message. If this version does not know
    /// the code, the error has the type `api_error` and a general message.
    #[must_use]
    pub fn new(code: ErrorCode, request_id: RequestId) -> Self {
        Self {
            error_type: code.error_type().or(Some(ErrorType::ApiError)),
            message: code.default_message().into(),
            code,
            request_id: Some(request_id),
        }
    }

    /// Reads an error from JSON, by the rules in [`json`](crate::json).
    ///
    /// # Errors
    /// Returns the fault with its field, line and column. The error never contains the value of the field.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ParseError> {
        json::read(bytes)
    }

    /// Writes an error as JSON without spaces.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

deserialize!(ApiError);

/// The longest message that is shown in full: 500 bytes.
const SHOWN_MESSAGE: usize = 500;

/// Writes `code: message (request_id)`.
impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, one_line(&self.message, SHOWN_MESSAGE))?;
        match &self.request_id {
            Some(id) => write!(f, " ({id})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiError")
            .field("error_type", &self.error_type)
            .field("code", &self.code)
            .field("message", &one_line(&self.message, SHOWN_MESSAGE))
            .field("request_id", &self.request_id)
            .finish()
    }
}

impl core::error::Error for ApiError {}

#[derive(Serialize)]
struct Envelope<T> {
    error: T,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'a ErrorType>,
    code: &'a ErrorCode,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a RequestId>,
}

impl Serialize for ApiError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let error = ErrorBody {
            r#type: self.error_type.as_ref(),
            code: &self.code,
            message: &self.message,
            request_id: self.request_id.as_ref(),
        };
        Envelope { error }.serialize(serializer)
    }
}

json_object! {
    /// The fields of an error. Only `code` is required.
    struct ErrorFields {
        code: ErrorCode,
        r#type: Lenient<ErrorType>,
        message: Lenient<String>,
        request_id: Lenient<RequestId>,
    }
}

json_object! {
    struct ErrorEnvelope {
        error: ErrorFields,
    }
}

impl<'de> FromJson<'de> for ApiError {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        let ErrorFields { code, r#type, message, request_id } =
            ErrorEnvelope::read(from, tracker)?.error;
        Ok(Self {
            error_type: r#type.0,
            message: message.0.unwrap_or_else(|| code.default_message().into()),
            code,
            // It is shown everywhere, so it must not be a secret that somebody sent back.
            request_id: request_id.0.filter(|id| one_line(id.as_str(), MAX_ID_LEN) == id.as_str()),
        })
    }
}

/// A value, or `None` if the value is missing or has a wrong form.
struct Lenient<T>(Option<T>);

impl<'de, T: DeserializeOwned> FromJson<'de> for Lenient<T> {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        let json = RawJson::read(from, tracker)?;
        Ok(Self(serde_json::from_str(json.0.get()).ok()))
    }

    fn absent() -> Option<Self> {
        Some(Self(None))
    }
}
