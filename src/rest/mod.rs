//! The REST API's three operations, each in both directions.
//!
//! | operation | request | answer |
//! |---|---|---|
//! | [`GetAccount`] | `GET /v1/account` | [`Account`](crate::model::Account) |
//! | [`ListCalls`] | `GET /v1/calls` | [`CallList`](crate::model::CallList) |
//! | [`GetCall`] | `GET /v1/calls/{call_id}` | [`Call`](crate::model::Call) |
//!
//! A client writes the address of an operation ([`ApiRequest::target`]). A service reads it
//! ([`AnyRequest::read`]) and writes the answer ([`ApiResponse::to_response`], [`ErrorReply`]). What is
//! fixed about an operation, its path, scope, quota and error codes, is in one table: [`Operation`].
//!
//! These are the words of the conversation, not its rules. A service goes through
//! `service::exchange`, which asks for a credential before anything is looked up. A customer goes
//! through `client::Client`, which adds the credential, and `client::read`, which tells who must act
//! on an error. Types of the `http` crate are met at the edges; beside each stands a way in and out
//! as plain text, for frameworks on another version of it.
//!
//! ```
//! use call_assistant::rest::{ApiResponse, AnyRequest, ApiRequest, ListCalls};
//! use call_assistant::id::RequestId;
//! use call_assistant::model::CallList;
//!
//! // The customer asks.
//! let list = ListCalls::new().with_cursor("abc");
//! assert_eq!(list.target()?, "/v1/calls?limit=50&cursor=abc");
//!
//! // The service understands, and answers.
//! let request = AnyRequest::read("GET", "/v1/calls", Some("limit=50&cursor=abc"))?;
//! assert_eq!(request, list.into());
//! let response = CallList::new(vec![], None).to_response(&RequestId::from_random([1; 16]));
//! assert_eq!(response.body(), br#"{"data":[],"next_cursor":null,"has_more":false}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod api_key;
mod base_url;
#[cfg(feature = "client")]
pub mod client;
mod error;
mod list_calls;
mod listing;
mod operation;
mod parameter_error;
mod percent;
mod quota;
mod request;
mod response;
#[cfg(feature = "service")]
pub mod server;

pub use api_key::{ApiKey, ApiKeyError, Mode, Scope};
pub use base_url::{BaseUrl, BaseUrlError};
pub use error::{ApiError, ErrorCode, ErrorType};
pub use list_calls::ListCalls;
pub use listing::{CreatedRange, CreatedRangeError, Limit, LimitError};
pub use operation::{Operation, Parameter};
pub use parameter_error::{ParameterError, UnknownName};
pub use quota::Quota;
pub use request::{AnyRequest, ApiRequest, GetAccount, GetCall, ReadError, UnsendableError};
pub use response::{ApiResponse, ErrorReply, REQUEST_ID_HEADER};
