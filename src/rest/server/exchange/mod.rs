//! One request, from its head to its response. Each state has its own file.

mod admitted;
mod authorized;
mod calls;
mod head;
mod identified;
mod received;

use alloc::vec::Vec;

use http::Response;

use super::rejection::{Rejection, RejectionReason, headless};
use crate::id::{self, CallId, CredentialId, RequestId};
use crate::rest::percent::decode_segment;
use crate::rest::{ApiResponse, ListCalls, Operation, ParameterError};

pub use admitted::Admitted;
pub use authorized::{AccountQuery, Authorized, CallQuery};
pub use calls::CallsQuery;
pub use head::RequestHead;
pub use identified::Identified;
pub use received::Received;

/// The facts about the request that every state, rejection and response has.
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

/// A request with valid parameters.
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
