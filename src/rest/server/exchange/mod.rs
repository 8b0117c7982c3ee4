//! One request of the REST API, from its head to its answer.
//!
//! ```text
//! RequestHead
//!     │ new                        404 unknown path, 405
//! Received
//!     │ identify      <── key      401
//! Identified
//!     │ admit         <── rate     429
//! Admitted
//!     │ authorize     <── account  403, 402, 400
//! Authorized
//!     │ answer        <── rows     404 no such call
//!  Response
//! ```
//!
//! Each step consumes the state before it and leads to the next, or to a [`Rejection`], which is a
//! finished answer. Between the steps the host looks up what the next one needs, where and however
//! it likes; what it may look up, and for whom, it is told by the state. Where a look-up fails, each
//! state turns into a 500 by `internal_error`.
//!
//! The states own what they hold and borrow nothing, so a look-up may await.
//!
//! ```
//! use std::collections::HashMap;
//!
//! use call_assistant::Product;
//! use call_assistant::rest::{ApiKey, Mode, Scope};
//! use call_assistant::rest::server::StoredKey;
//! use call_assistant::id::{AccountId, CallId, CredentialId, RequestId};
//! use call_assistant::model::{Account, Call};
//! use call_assistant::rest::server::Entitlements;
//! use call_assistant::rest::server::{CursorKey, CursorKeys};
//! use call_assistant::rest::server::{Authorized, CallRow, Received, RequestHead};
//! use call_assistant::rest::server::RateWindows;
//! use call_assistant::rest::server::Rejection;
//! use call_assistant::rest::server::AccountStatus;
//! use call_assistant::Timestamp;
//! use http::Response;
//!
//! /// A host with everything in memory. One with a database differs in the look-ups alone.
//! struct Host {
//!     keys: HashMap<[u8; 32], StoredKey>,
//!     rates: RateWindows,
//!     accounts: HashMap<AccountId, (Account, AccountStatus)>,
//!     calls: Vec<CallRow>, // newest first
//!     cursors: CursorKeys,
//! }
//!
//! impl Host {
//!     fn serve(
//!         &mut self,
//!         head: &RequestHead<'_>,
//!         request_id: RequestId,
//!         now: Timestamp,
//!     ) -> Result<Response<Vec<u8>>, Rejection> {
//!         let received = Received::new(head, request_id)?;
//!
//!         let mut key = received.digest().and_then(|digest| self.keys.get_mut(digest.as_bytes()));
//!         let identified = received.identify(key.as_deref(), now)?;
//!         if let Some(key) = &mut key {
//!             key.last_used_at = Some(identified.used_at());
//!         }
//!
//!         let admitted = identified.admit_in(&mut self.rates, now)?;
//!
//!         let Some((account, standing)) = self.accounts.get(admitted.grant().account_id()) else {
//!             return Err(admitted.internal_error()); // a key without its account
//!         };
//!         match admitted.authorize(standing, &self.cursors)? {
//!             Authorized::Account(granted) => granted.answer(account.clone()),
//!             Authorized::Calls(granted) => {
//!                 let query = granted.query();
//!                 let rows = self.calls.iter().filter(|row| query.matches(row));
//!                 let rows = rows.take(query.page().fetch()).cloned().collect();
//!                 granted.answer(rows, &self.cursors)
//!             }
//!             Authorized::Call(granted) => {
//!                 let row = self.calls.iter().find(|row| granted.query().matches(row));
//!                 granted.answer(row.cloned())
//!             }
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let now = Timestamp::from_unix(1_784_887_200).ok_or("out of range")?;
//! let account_id = AccountId::parse("acct_1")?;
//! let key = ApiKey::from_random(&Product::default(), Mode::Test, [7; 32]);
//! let stored = StoredKey::new(CredentialId::parse("cred_1")?, account_id.clone(), &key, now)
//!     .with_scopes([Scope::AccountRead, Scope::CallsRead]);
//! let standing = AccountStatus {
//!     account_id: account_id.clone(),
//!     closing: false,
//!     subscribed: true,
//!     plan: Entitlements::pro().with_public_api(),
//! };
//! let call = Call::new(CallId::parse("call_1")?, now, now);
//! let mut host = Host {
//!     keys: HashMap::from([(*stored.digest.as_bytes(), stored)]),
//!     rates: RateWindows::new(1_000, [3; 16]),
//!     accounts: HashMap::from([(
//!         account_id.clone(),
//!         (Account::new(account_id.clone(), "Europe/Oslo"), standing),
//!     )]),
//!     calls: vec![CallRow { account_id, mode: Mode::Test, call }],
//!     cursors: CursorKeys::new(CursorKey::new(1, [0x7c; 32])),
//! };
//!
//! let mut get = |path, authorization: &str| {
//!     let head = RequestHead::new("GET", path, None).authorization(authorization.as_bytes());
//!     host.serve(&head, RequestId::from_random([1; 16]), now).unwrap_or_else(|refusal| {
//!         eprintln!("{refusal}"); // says why, which the answer does not
//!         refusal.into_response()
//!     })
//! };
//!
//! let bearer = format!("Bearer {}", key.reveal());
//! let answer = get("/v1/account", &bearer);
//! assert_eq!(answer.status(), 200);
//! assert!(answer.body().ends_with(br#""livemode":false}"#));
//! assert_eq!(get("/v1/calls", &bearer).status(), 200);
//! assert_eq!(get("/v1/calls/call_1", &bearer).status(), 200);
//! assert_eq!(get("/v1/calls/call_2", &bearer).status(), 404);
//! assert_eq!(get("/v1/account", "Bearer service_test_stolen").status(), 401);
//! # Ok(())
//! # }
//! ```
//!
//! # What does not compile
//!
//! A request cannot be authorised before its credential is known and counted:
//!
//! ```compile_fail,E0599
//! # use call_assistant::rest::server::{CursorKeys, Received, AccountStatus};
//! fn hasty(received: Received, standing: &AccountStatus, cursors: &CursorKeys) {
//!     let _ = received.authorize(standing, cursors);
//! }
//! ```
//!
//! Nor can calls be looked up for it: before that there is no query,
//!
//! ```compile_fail,E0599
//! # use call_assistant::rest::server::{Admitted, CallsQuery};
//! fn hasty(admitted: &Admitted) -> &CallsQuery {
//!     admitted.query()
//! }
//! ```
//!
//! and none can be made up that is not bound to the account of a credential:
//!
//! ```compile_fail,E0451
//! # use call_assistant::rest::server::{CallsQuery, Grant, PageQuery};
//! fn forged(grant: Grant, page: PageQuery) -> CallsQuery {
//!     CallsQuery { grant, page }
//! }
//! ```
//!
//! No state is answered twice:
//!
//! ```compile_fail,E0382
//! # use call_assistant::rest::server::CallGranted;
//! fn twice(granted: CallGranted) {
//!     let _ = granted.answer(None);
//!     let _ = granted.answer(None);
//! }
//! ```
//!
//! And no answer, not even that of a host which fails, is without its request id:
//!
//! ```compile_fail,E0061
//! # use call_assistant::rest::server::Rejection;
//! let _ = Rejection::internal_error();
//! ```
//!
//! ```compile_fail,E0061
//! # use call_assistant::{model::Account, rest::ApiResponse};
//! fn nameless(account: &Account) -> http::Response<Vec<u8>> {
//!     account.to_response()
//! }
//! ```
//!
//! # What a host still has to do
//!
//! - Answers are complete: send status, headers and body as they are, and add no CORS headers.
//!   `Content-Length` is there already, on the answer to a `HEAD` too.
//! - Requests that are not HTTP at all are answered by the HTTP library, without an envelope.
//! - Look keys up by [`Received::digest`] at every request: a cache of keys delays revocation,
//!   which is to take effect at once.

mod admitted;
mod granted;
mod head;
mod identified;
mod received;

use crate::id::{CallId, CredentialId, IdError, RequestId};
use crate::rest::{ListCalls, Operation, ParameterError};

use super::rejection::{Rejection, RejectionReason};

pub use admitted::Admitted;
pub use granted::{
    AccountGranted, Authorized, CallGranted, CallQuery, CallRow, CallsGranted, CallsQuery,
};
pub use head::RequestHead;
pub use identified::Identified;
pub use received::Received;

/// What goes along through all states, and into every answer.
#[derive(Clone, Debug)]
struct Context {
    request_id: RequestId,
    operation: Option<Operation>,
    credential_id: Option<CredentialId>,
    head_only: bool,
}

impl Context {
    fn refuse(self, cause: RejectionReason) -> Rejection {
        let Self { request_id, operation, credential_id, head_only } = self;
        Rejection { cause, request_id, operation, credential_id, head_only }
    }
}

/// What was asked for, well or not.
#[derive(Debug)]
enum Asked {
    Account,
    Calls(ListCalls),
    Call(CallId),
    Wrongly(Operation, ParameterError),
    /// A call by a text that no call has for an id.
    NoCall(IdError),
}

impl Asked {
    fn operation(&self) -> Operation {
        match self {
            Self::Account => Operation::GetAccount,
            Self::Calls(_) => Operation::ListCalls,
            Self::Call(_) | Self::NoCall(_) => Operation::GetCall,
            Self::Wrongly(operation, _) => *operation,
        }
    }
}

macro_rules! states {
    ($($name:ident),+) => {
        $(impl $name {
            /// The request, as its answer will name it.
            #[must_use]
            pub fn request_id(&self) -> &RequestId {
                &self.context.request_id
            }

            /// The 500 of a host whose look-up failed.
            #[must_use]
            pub fn internal_error(&self) -> Rejection {
                self.context.clone().refuse(RejectionReason::HostGaveUp)
            }
        })+
    };
}

states!(Received, Identified, Admitted, AccountGranted, CallsGranted, CallGranted);
