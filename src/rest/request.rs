//! The operations as requests: built by a client, read by a service.

use alloc::borrow::Cow;
use alloc::string::String;

use http::Method;
use http::request::Parts;

use super::list_calls::undecodable;
use super::operation::Route;
use super::percent::{decode_segment, encode_into};
use super::{ApiResponse, ListCalls, Operation, Parameter, ParameterError};
use crate::id::{self, CallId, IdError};
use crate::model::{Account, Call, CallList};
use crate::rest::ErrorCode;

/// `GET /v1/account`: validates a key and reads its account. It takes no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GetAccount;

/// `GET /v1/calls/{call_id}`: retrieves one call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_structs)]
pub struct GetCall {
    /// Which call.
    pub call_id: CallId,
}

/// An operation with its parameters: what turns into a request, and what its answer holds.
///
/// Implemented by [`GetAccount`], [`ListCalls`] and [`GetCall`], and by nothing else.
pub trait ApiRequest: sealed::Sealed + Into<AnyRequest> {
    /// Which operation.
    const OPERATION: Operation;

    /// What a successful answer holds.
    type Response: ApiResponse;

    /// The path and query of the request, to stand behind a [`BaseUrl`](super::BaseUrl).
    ///
    /// # Errors
    /// See [`UnsendableError`].
    fn target(&self) -> Result<String, UnsendableError>;
}

impl ApiRequest for GetAccount {
    const OPERATION: Operation = Operation::GetAccount;
    type Response = Account;

    fn target(&self) -> Result<String, UnsendableError> {
        Ok(Self::OPERATION.path().into())
    }
}

impl ApiRequest for ListCalls {
    const OPERATION: Operation = Operation::ListCalls;
    type Response = CallList;

    fn target(&self) -> Result<String, UnsendableError> {
        let len = self.cursor.as_ref().map_or(0, String::len);
        if len > Self::MAX_CURSOR_LEN {
            return Err(UnsendableError::LongCursor { len });
        }
        Ok(alloc::format!("{}?{}", Self::OPERATION.path(), self.query()))
    }
}

impl ApiRequest for GetCall {
    const OPERATION: Operation = Operation::GetCall;
    type Response = Call;

    fn target(&self) -> Result<String, UnsendableError> {
        let id = self.call_id.as_str();
        if matches!(id, "." | "..") {
            return Err(UnsendableError::DotId);
        }
        let mut target = String::from(Operation::ListCalls.path());
        target.push('/');
        encode_into(&mut target, id);
        Ok(target)
    }
}

/// Why a request cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnsendableError {
    /// The id is `.` or `..`: however it is encoded, URL parsers take such a segment for a
    /// direction and would ask for something else.
    #[error("call_id consists of dots, which no address can carry")]
    DotId,
    /// The cursor is too long for an address.
    #[error("cursor has {len} bytes, more than {max}", max = ListCalls::MAX_CURSOR_LEN)]
    LongCursor {
        /// The length, in bytes.
        len: usize,
    },
    /// The parts are fine, but `http` refuses the whole.
    #[error("address is not one that the http crate takes")]
    Address,
}

/// Any of the three requests, as a service reads them.
///
/// ```
/// use call_assistant::rest::{AnyRequest, ReadError};
///
/// let request = AnyRequest::read("GET", "/v1/calls/call_8fK2", None)?;
/// assert!(matches!(request, AnyRequest::GetCall(get) if get.call_id.as_str() == "call_8fK2"));
///
/// assert_eq!(AnyRequest::read("GET", "/v1/calls/", None), Err(ReadError::UnknownPath));
/// # Ok::<(), ReadError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AnyRequest {
    /// Validate a key and read its account.
    GetAccount(GetAccount),
    /// List the account's calls.
    ListCalls(ListCalls),
    /// Retrieve one call.
    GetCall(GetCall),
}

impl AnyRequest {
    /// Reads a request's method, path and query; the body, if any, means nothing.
    ///
    /// The path is the one below the base address, see
    /// [`BaseUrl::below`](super::BaseUrl::below), as it came: still percent-encoded.
    /// Parameters that `GET /v1/account` and `GET /v1/calls/{call_id}` do not take are passed over
    /// (D-4).
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(method: &str, path: &str, query: Option<&str>) -> Result<Self, ReadError> {
        let Route { operation, segment } = Route::find(path).ok_or(ReadError::UnknownPath)?;
        if method != Method::GET.as_str() && method != Method::HEAD.as_str() {
            return Err(ReadError::Method { operation });
        }
        match operation {
            Operation::GetAccount => Ok(Self::GetAccount(GetAccount)),
            Operation::ListCalls => ListCalls::from_query(query.unwrap_or_default())
                .map(Self::ListCalls)
                .map_err(|error| ReadError::Parameter { operation, error }),
            Operation::GetCall => {
                let text =
                    call_id(segment).map_err(|error| ReadError::Parameter { operation, error })?;
                let call_id =
                    CallId::parse(&text).map_err(|error| ReadError::NoSuchId { error })?;
                Ok(Self::GetCall(GetCall { call_id }))
            }
        }
    }

    /// Reads a request of the `http` crate whose path is below the base address already.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn from_parts(parts: &Parts) -> Result<Self, ReadError> {
        Self::read(parts.method.as_str(), parts.uri.path(), parts.uri.query())
    }

    /// Which operation it is.
    #[must_use]
    pub fn operation(&self) -> Operation {
        match self {
            Self::GetAccount(_) => Operation::GetAccount,
            Self::ListCalls(_) => Operation::ListCalls,
            Self::GetCall(_) => Operation::GetCall,
        }
    }
}

/// Why a request is none of the three, or not one that can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No operation has this path.
    #[error("no operation has this path")]
    UnknownPath,
    /// The path is an operation's, the method is neither `GET` nor `HEAD`.
    #[error("{operation} takes no method but {}", Operation::ALLOW)]
    Method {
        /// The operation.
        operation: Operation,
    },
    /// A parameter is not valid.
    #[error("{error}")]
    Parameter {
        /// The operation.
        operation: Operation,
        /// What is wrong with it.
        error: ParameterError,
    },
    /// The path names a call by a text that is no call's id: there is no such call (D-7).
    #[error("no call has such an id: {error}")]
    NoSuchId {
        /// Why it is none.
        error: IdError,
    },
}

impl ReadError {
    /// The code it is answered with.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::UnknownPath | Self::NoSuchId { .. } => ErrorCode::ResourceNotFound,
            Self::Method { .. } => ErrorCode::MethodNotAllowed,
            Self::Parameter { .. } => ErrorCode::InvalidParameter,
        }
    }

    /// The operation that was asked for; `None` where the path is none's.
    #[must_use]
    pub fn operation(&self) -> Option<Operation> {
        match *self {
            Self::UnknownPath => None,
            Self::Method { operation } | Self::Parameter { operation, .. } => Some(operation),
            Self::NoSuchId { .. } => Some(Operation::GetCall),
        }
    }
}

fn call_id(segment: &str) -> Result<Cow<'_, str>, ParameterError> {
    let text = decode_segment(segment).map_err(|error| undecodable(Parameter::CallId, error))?;
    if text.len() > id::MAX_ID_LEN {
        return Err(ParameterError::CallIdLength);
    }
    Ok(text)
}

impl From<GetAccount> for AnyRequest {
    fn from(request: GetAccount) -> Self {
        Self::GetAccount(request)
    }
}

impl From<ListCalls> for AnyRequest {
    fn from(request: ListCalls) -> Self {
        Self::ListCalls(request)
    }
}

impl From<GetCall> for AnyRequest {
    fn from(request: GetCall) -> Self {
        Self::GetCall(request)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::GetAccount {}
    impl Sealed for super::ListCalls {}
    impl Sealed for super::GetCall {}
}
