//! The REST API's three operations, each in both directions.
//!
//! | operation | request | answer |
//! |---|---|---|
//! | [`GetAccount`] | `GET /v1/account` | [`Account`](crate::model::Account) |
//! | [`ListCalls`] | `GET /v1/calls` | [`CallList`](crate::model::CallList) |
//! | [`GetCall`] | `GET /v1/calls/{call_id}` | [`Call`](crate::model::Call) |
//!
//! A client turns an operation into a request ([`Endpoint::to_request`]). A service reads the
//! request ([`ApiRequest::read`]) and writes the answer ([`Answer::to_response`], [`ErrorReply`]).
//! What is fixed about an operation, its path, scope, quota and error codes, is in one table:
//! [`Operation`].
//!
//! These are the words of the conversation, not its rules. A service goes through
//! `service::exchange`, which asks for a credential before anything is looked up; a client reads
//! what comes back with `client::read`, which tells who must act on an error. Types of the `http` crate are met at the edges; beside each stands a way in and out as plain text, for
//! frameworks on another version of it.
//!
//! ```
//! use call_assistant::Product;
//! use call_assistant::api::{Answer, ApiRequest, BaseAddress, Endpoint, GetAccount};
//! use call_assistant::credential::{ApiKey, Mode};
//! use call_assistant::id::{AccountId, RequestId};
//! use call_assistant::model::Account;
//!
//! let base = BaseAddress::parse("https://api.example.com")?;
//! let key = ApiKey::from_random(&Product::default(), Mode::Live, [7; 32]);
//!
//! // The customer asks.
//! let request = GetAccount.to_request(&base, &key)?;
//! assert_eq!(request.uri(), "https://api.example.com/v1/account");
//!
//! // The service understands, and answers.
//! let (head, ()) = request.into_parts();
//! assert_eq!(ApiRequest::from_parts(&head)?, GetAccount.into());
//! let account = Account::new(AccountId::parse("acct_1")?, "Europe/Oslo");
//! let response = account.to_response(&RequestId::from_random([1; 16]));
//!
//! // The customer reads.
//! let (head, body) = response.into_parts();
//! assert_eq!((head.status.as_u16(), Account::from_json(&body)?), (200, account));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod base_address;
mod list_calls;
mod operation;
mod parameter_error;
mod percent;
mod reply;
mod request;

pub use base_address::{BaseAddress, BaseAddressError};
pub use list_calls::ListCalls;
pub use operation::{Operation, Parameter};
pub use parameter_error::{ParameterError, ShownName};
pub use reply::{Answer, ErrorReply, REQUEST_ID_HEADER};
pub use request::{ApiRequest, Endpoint, GetAccount, GetCall, ReadError, UnsendableError};
