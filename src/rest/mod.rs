//! The REST API: three operations, with the requests and responses that both sides share.
//!
//! ```
//! use call_assistant::id::RequestId;
//! use call_assistant::model::CallList;
//! use call_assistant::rest::{ApiRequest, ApiResponse, ListCalls};
//!
//! // The customer's side writes a request.
//! let list = ListCalls::new().with_cursor("abc");
//! assert_eq!(list.target()?, "/v1/calls?limit=50&cursor=abc");
//!
//! // The service's side reads it and writes the response.
//! assert_eq!(ListCalls::from_query("limit=50&cursor=abc"), Ok(list));
//! let response = CallList::new(vec![], None).to_response(&RequestId::from_random([1; 16]));
//! assert_eq!(response.body(), br#"{"data":[],"next_cursor":null,"has_more":false}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | operation | request | response |
//! |---|---|---|
//! | [`GetAccount`] | `GET /v1/account` | [`Account`](crate::model::Account) |
//! | [`ListCalls`] | `GET /v1/calls` | [`CallList`](crate::model::CallList) |
//! | [`GetCall`] | `GET /v1/calls/{call_id}` | [`Call`](crate::model::Call) |
//!
//! [`Operation`] contains the paths, scopes, quotas and error codes of the operations. The
//! [protocol](crate::guide::protocol) explains the operations.
//!
//! The service and its customers share this module. A service answers requests with `rest::server`, which
//! checks the credential before it looks up the account. A customer sends requests with `rest::client`, which
//! adds the credential and reports who must act on an error. Types of the `http` crate appear only in
//! functions that take or return requests and responses. For frameworks with another version of `http`, plain
//! values can replace each of these types.

mod api_key;
mod base_url;
mod call_filter;
#[cfg(feature = "client")]
pub mod client;
mod error;
mod list_calls;
mod operation;
mod parameter_error;
mod percent;
mod quota;
mod request;
mod response;
#[cfg(feature = "service")]
pub mod server;
#[cfg(all(feature = "client", feature = "service"))]
pub mod testing;

pub use api_key::{ApiKey, Mode, Scope};
pub use base_url::BaseUrl;
pub use call_filter::CallFilter;
pub use error::{ApiError, ErrorCode, ErrorType};
pub use list_calls::ListCalls;
pub use operation::Operation;
pub use parameter_error::ParameterError;
pub use quota::Quota;
pub use request::{ApiRequest, GetAccount, GetCall};
pub use response::{ApiResponse, REQUEST_ID_HEADER};
