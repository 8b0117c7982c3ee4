//! One request, from its head to its response: a file for each state.

mod admitted;
mod authorized;
mod calls;
mod head;
mod identified;
mod received;

use alloc::vec::Vec;

use http::Response;

use super::rejection::{Rejection, RejectionReason, headless};
use crate::id::{self, AccountId, CallId, CredentialId, RequestId};
use crate::rest::percent::decode_segment;
use crate::rest::{ApiResponse, ListCalls, Operation, ParameterError};

pub use admitted::Admitted;
pub use authorized::{AccountQuery, Authorized, CallQuery};
pub use calls::CallsQuery;
pub use head::RequestHead;
pub use identified::Identified;
pub use received::Received;

/// What every state, rejection and response knows about the request.
#[derive(Debug)]
struct Context {
    request_id: RequestId,
    operation: Option<Operation>,
    credential_id: Option<CredentialId>,
    head_only: bool,
}

impl Context {
    fn reject(&self, reason: RejectionReason) -> Rejection {
        Rejection {
            reason,
            request_id: self.request_id.clone(),
            operation: self.operation,
            credential_id: self.credential_id.clone(),
            head_only: self.head_only,
        }
    }

    fn respond(&self, body: &impl ApiResponse) -> Response<Vec<u8>> {
        headless(body.to_response(&self.request_id), self.head_only)
    }
}

/// What is asked for, with valid parameters.
#[derive(Debug)]
enum Asked {
    Account,
    Calls(ListCalls),
    Call(CallId),
}

impl Asked {
    fn read(
        operation: Operation,
        segment: &str,
        query: Option<&str>,
    ) -> Result<Self, RejectionReason> {
        match operation {
            Operation::GetAccount => Ok(Self::Account),
            Operation::ListCalls => ListCalls::from_query(query.unwrap_or_default())
                .map(Self::Calls)
                .map_err(RejectionReason::Parameter),
            Operation::GetCall => {
                let id = decode_segment(segment)
                    .map_err(|error| ParameterError::undecodable("call_id", error))
                    .and_then(|id| match id.len() {
                        0..=id::MAX_ID_LEN => Ok(id),
                        _ => Err(ParameterError::CallIdLength),
                    })
                    .map_err(RejectionReason::Parameter)?;
                // A text that cannot be an id is a call that does not exist (D-7).
                CallId::parse(&id).map(Self::Call).map_err(RejectionReason::NotAnId)
            }
        }
    }
}

/// Defines the methods of every state, and those of the states that have an owner.
macro_rules! states {
    ($($name:ident $($owner:ident)?;)+) => {
        $(impl $name {
            /// Returns the id of the request, which the response will repeat.
            #[must_use]
            pub fn request_id(&self) -> &RequestId {
                &self.context.request_id
            }

            /// Creates the 500 of a host whose look-up failed.
            #[must_use]
            pub fn internal_error(&self) -> Rejection {
                self.context.reject(RejectionReason::Internal)
            }

            $(/// Returns the account of the credential: look up what belongs to it.
            #[must_use]
            pub fn account_id(&self) -> &AccountId {
                &self.$owner.account_id
            })?
        })+
    };
}

states! {
    Received;
    Identified owner;
    Admitted owner;
    AccountQuery owner;
    CallsQuery owner;
    CallQuery owner;
}
