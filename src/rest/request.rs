//! The operations as requests.

use alloc::string::String;

use super::percent::encode_into;
use super::{ApiResponse, ListCalls, Operation, ParameterError};
use crate::id::CallId;
use crate::model::{Account, Call, CallList};

/// A request of the API, with the type of its response.
///
/// ```
/// use call_assistant::id::CallId;
/// use call_assistant::rest::{ApiRequest, GetAccount, GetCall, ListCalls};
///
/// assert_eq!(GetAccount.target()?, "/v1/account");
/// assert_eq!(ListCalls::new().with_limit(100).target()?, "/v1/calls?limit=100");
/// assert_eq!(GetCall::new(CallId::parse("a/b")?).target()?, "/v1/calls/a%2Fb");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The trait is sealed. Only [`GetAccount`], [`ListCalls`] and [`GetCall`] implement it.
pub trait ApiRequest: Clone + sealed::Sealed {
    /// The operation.
    const OPERATION: Operation;

    /// The body of a successful response.
    type Response: ApiResponse;

    /// Writes the path and query, to be appended to a [`BaseUrl`](super::BaseUrl).
    ///
    /// # Errors
    /// See [`ParameterError`].
    fn target(&self) -> Result<String, ParameterError>;

    /// Returns whether a response can be the answer to this request.
    #[doc(hidden)]
    fn is_answered_by(&self, _: &Self::Response) -> bool {
        true
    }
}

/// A request for the account of the key: `GET /v1/account`. The request takes no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GetAccount;

/// A request for one call: `GET /v1/calls/{call_id}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GetCall {
    /// The id of the call.
    pub call_id: CallId,
}

impl GetCall {
    /// Creates the request for the call with this id.
    #[must_use]
    pub const fn new(call_id: CallId) -> Self {
        Self { call_id }
    }
}

impl ApiRequest for GetAccount {
    const OPERATION: Operation = Operation::GetAccount;
    type Response = Account;

    fn target(&self) -> Result<String, ParameterError> {
        Ok(Self::OPERATION.path().into())
    }
}

impl ApiRequest for ListCalls {
    const OPERATION: Operation = Operation::ListCalls;
    type Response = CallList;

    fn target(&self) -> Result<String, ParameterError> {
        Ok(alloc::format!("{}?{}", Self::OPERATION.path(), self.query()?))
    }
}

impl ApiRequest for GetCall {
    const OPERATION: Operation = Operation::GetCall;
    type Response = Call;

    fn target(&self) -> Result<String, ParameterError> {
        let id = self.call_id.as_str();
        if matches!(id, "." | "..") {
            return Err(ParameterError::CallIdDots);
        }
        let mut target = String::from(Operation::ListCalls.path());
        target.push('/');
        encode_into(&mut target, id);
        Ok(target)
    }

    // D-94: a shared cache or a proxy may mix answers up.
    fn is_answered_by(&self, call: &Call) -> bool {
        call.id == self.call_id
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::GetAccount {}
    impl Sealed for super::ListCalls {}
    impl Sealed for super::GetCall {}
}
