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
//! Each step consumes the state before it and leads to the next, or to a [`Refusal`], which is a
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
//! use call_assistant::credential::{ApiKey, Mode, Scope, StoredKey};
//! use call_assistant::id::{AccountId, CallId, CredentialId, RequestId};
//! use call_assistant::model::{Account, Call};
//! use call_assistant::plan::Entitlements;
//! use call_assistant::service::cursor::{CursorKey, CursorKeys};
//! use call_assistant::service::exchange::{Authorized, CallRow, Received, RequestHead};
//! use call_assistant::service::rate::RateWindows;
//! use call_assistant::service::refusal::Refusal;
//! use call_assistant::service::standing::Standing;
//! use call_assistant::time::Timestamp;
//! use http::Response;
//!
//! /// A host with everything in memory. One with a database differs in the look-ups alone.
//! struct Host {
//!     keys: HashMap<[u8; 32], StoredKey>,
//!     rates: RateWindows,
//!     accounts: HashMap<AccountId, (Account, Standing)>,
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
//!     ) -> Result<Response<Vec<u8>>, Refusal> {
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
//! let standing = Standing {
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
//! # use call_assistant::service::{cursor::CursorKeys, exchange::Received, standing::Standing};
//! fn hasty(received: Received, standing: &Standing, cursors: &CursorKeys) {
//!     let _ = received.authorize(standing, cursors);
//! }
//! ```
//!
//! Nor can calls be looked up for it: before that there is no query,
//!
//! ```compile_fail,E0599
//! # use call_assistant::service::exchange::{Admitted, CallsQuery};
//! fn hasty(admitted: &Admitted) -> &CallsQuery {
//!     admitted.query()
//! }
//! ```
//!
//! and none can be made up that is not bound to the account of a credential:
//!
//! ```compile_fail,E0451
//! # use call_assistant::service::{exchange::CallsQuery, grant::Grant, page::PageQuery};
//! fn forged(grant: Grant, page: PageQuery) -> CallsQuery {
//!     CallsQuery { grant, page }
//! }
//! ```
//!
//! No state is answered twice:
//!
//! ```compile_fail,E0382
//! # use call_assistant::service::exchange::CallGranted;
//! fn twice(granted: CallGranted) {
//!     let _ = granted.answer(None);
//!     let _ = granted.answer(None);
//! }
//! ```
//!
//! And no answer, not even that of a host which fails, is without its request id:
//!
//! ```compile_fail,E0061
//! # use call_assistant::service::refusal::Refusal;
//! let _ = Refusal::internal_error();
//! ```
//!
//! ```compile_fail,E0061
//! # use call_assistant::{api::Answer, model::Account};
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

mod granted;
mod head;

use core::time::Duration;

use crate::api::{ApiRequest, ListCalls, Operation, ParameterError, ReadError};
use crate::credential::{KeyDigest, KeyState, StoredKey};
use crate::id::{CallId, CredentialId, IdError, RequestId};
use crate::quota::Quota;
use crate::time::Timestamp;

use super::cursor::{CursorFault, CursorKeys};
use super::grant::Grant;
use super::page::PageQuery;
use super::rate::{RateCause, RateExceeded, RateWindow, RateWindows};
use super::refusal::{Cause, Refusal};
use super::standing::{Check, Standing};

pub use granted::{
    AccountGranted, Authorized, CallGranted, CallQuery, CallRow, CallsGranted, CallsQuery,
};
pub use head::RequestHead;

/// A request for one of the operations. Who sends it is not known yet.
#[derive(Debug)]
pub struct Received {
    context: Context,
    asked: Asked,
    credential: Result<KeyDigest, Cause>,
}

impl Received {
    /// Takes a request's head, and the id that the request is given: one of the host's own, made
    /// for it. Needs no look-up.
    ///
    /// # Errors
    /// The path or the method is none of the API's: 404, 405.
    pub fn new(head: &RequestHead<'_>, request_id: RequestId) -> Result<Self, Refusal> {
        let mut context = Context {
            request_id,
            operation: None,
            credential_id: None,
            head_only: head.method == http::Method::HEAD.as_str(),
        };
        let read = ApiRequest::read(head.method, head.path, head.query);
        context.operation = match &read {
            Ok(request) => Some(request.operation()),
            Err(error) => error.operation(),
        };
        let asked = match read {
            Ok(ApiRequest::GetAccount(_)) => Asked::Account,
            Ok(ApiRequest::ListCalls(list)) => Asked::Calls(list),
            Ok(ApiRequest::GetCall(get)) => Asked::Call(get.call_id),
            // What is wrong with the parameters is said to those who may ask at all.
            Err(ReadError::Parameter { operation, error }) => Asked::Wrongly(operation, error),
            Err(ReadError::NoSuchId { error }) => Asked::NoCall(error),
            Err(ReadError::Method { .. }) => return Err(context.refuse(Cause::Method)),
            Err(ReadError::UnknownPath) => return Err(context.refuse(Cause::UnknownPath)),
        };
        Ok(Self { context, asked, credential: head.credential() })
    }

    /// By which to look up the key; `None` if there is nothing to look up.
    #[must_use]
    pub fn digest(&self) -> Option<&KeyDigest> {
        self.credential.as_ref().ok()
    }

    /// What is asked for.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.asked.operation()
    }

    /// Checks the key that was found, if any. Its digest is compared again, in constant time.
    ///
    /// # Errors
    /// There is no key, or it is expired or revoked: 401, the same for all of these.
    pub fn identify(self, key: Option<&StoredKey>, now: Timestamp) -> Result<Identified, Refusal> {
        let found = match (&self.credential, key) {
            (Err(cause), _) => Err(cause.clone()),
            (Ok(digest), Some(key)) if key.digest == *digest => match key.state(now) {
                KeyState::Valid => Ok(Grant::of_key(key)),
                KeyState::Expired => Err(Cause::ExpiredCredential),
                KeyState::Revoked => Err(Cause::RevokedCredential),
            },
            _ => Err(Cause::UnknownCredential),
        };
        self.identified(found, now)
    }

    /// Takes what another way of authenticating the request has found, or nothing. The credential's
    /// own limits in time are that way's to check.
    ///
    /// # Errors
    /// Nothing was found: 401.
    pub fn identify_as(self, grant: Option<Grant>, now: Timestamp) -> Result<Identified, Refusal> {
        self.identified(grant.ok_or(Cause::UnknownCredential), now)
    }

    fn identified(
        mut self,
        found: Result<Grant, Cause>,
        now: Timestamp,
    ) -> Result<Identified, Refusal> {
        match found {
            Ok(grant) => {
                self.context.credential_id = Some(grant.credential_id().clone());
                Ok(Identified { context: self.context, asked: self.asked, grant, used_at: now })
            }
            Err(cause) => Err(self.context.refuse(cause)),
        }
    }
}

/// A request of a valid credential.
#[derive(Debug)]
pub struct Identified {
    context: Context,
    asked: Asked,
    grant: Grant,
    used_at: Timestamp,
}

impl Identified {
    /// Whose request it is.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// When the credential was used: what to store as its `last_used_at`.
    #[must_use]
    pub fn used_at(&self) -> Timestamp {
        self.used_at
    }

    /// The quota it counts against. With the credential's id, it says which window to load.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.asked.operation().quota()
    }

    /// Counts the request in the credential's window for this quota. Store the window afterwards,
    /// whatever comes of the request: every admitted one counts, and a refused one does not.
    ///
    /// # Errors
    /// The quota is used up: 429, with the wait.
    pub fn admit(self, window: &mut RateWindow, now: Timestamp) -> Result<Admitted, Refusal> {
        let verdict = window.check(self.quota(), now);
        self.admitted(verdict)
    }

    /// [`admit`](Self::admit) for a host whose windows are all in one place.
    ///
    /// # Errors
    /// The quota is used up: 429, with the wait.
    pub fn admit_in(self, windows: &mut RateWindows, now: Timestamp) -> Result<Admitted, Refusal> {
        let verdict = windows.check(self.grant.credential_id(), self.quota(), now);
        self.admitted(verdict)
    }

    /// [`admit`](Self::admit) for a host that counts elsewhere: what it found is enough, and how
    /// long to wait if it is no.
    ///
    /// # Errors
    /// The quota is used up: 429, with the wait.
    pub fn admit_as(self, verdict: Result<(), Duration>) -> Result<Admitted, Refusal> {
        self.admitted(verdict.map_err(|wait| RateExceeded { wait, cause: RateCause::Quota }))
    }

    fn admitted(self, verdict: Result<(), RateExceeded>) -> Result<Admitted, Refusal> {
        match verdict {
            Ok(()) => Ok(Admitted { context: self.context, asked: self.asked, grant: self.grant }),
            Err(exceeded) => Err(self.context.refuse(Cause::RateExceeded(exceeded))),
        }
    }
}

/// A request that has been counted, and whose account is to be looked at.
#[derive(Debug)]
pub struct Admitted {
    context: Context,
    asked: Asked,
    grant: Grant,
}

impl Admitted {
    /// Whose request it is: which account's standing to look up.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Decides whether the account and its credential may have what is asked for, and whether it
    /// can be asked for so: the rest of [`Check::ORDER`].
    ///
    /// # Errors
    /// The first check that fails: 403, 402, 400, or 404 for an id that no call has. A standing of
    /// another account: 500.
    pub fn authorize(
        self,
        standing: &Standing,
        cursors: &CursorKeys,
    ) -> Result<Authorized, Refusal> {
        let Self { context, asked, grant } = self;
        if standing.account_id != *grant.account_id() {
            return Err(context.refuse(Cause::WrongAccount));
        }
        let mut page = None;
        let objection = Check::ORDER.into_iter().find_map(|check| match check {
            // The states before this one made sure of these.
            Check::Path | Check::Method | Check::Credential | Check::Rate => None,
            Check::Closing => standing.closing.then_some(Cause::AccountClosing),
            Check::Subscription => (!standing.subscribed).then_some(Cause::NoSubscription),
            Check::Plan => (!standing.plan.public_api).then_some(Cause::PlanLacksApi),
            Check::Scope => {
                let scope = asked.operation().scope();
                (!grant.allows(&scope)).then_some(Cause::ScopeMissing(scope))
            }
            Check::Parameters => match asked {
                Asked::Wrongly(_, error) => Some(Cause::Parameter(error)),
                _ => None,
            },
            Check::Cursor => match &asked {
                Asked::Calls(list) => match page_query(list, &grant, cursors) {
                    Ok(query) => {
                        page = Some(query);
                        None
                    }
                    Err(fault) => Some(Cause::Cursor(fault)),
                },
                _ => None,
            },
            // Whether a call exists, the host says; that one cannot, the id does.
            Check::Resource => match asked {
                Asked::NoCall(error) => Some(Cause::NotAnId(error)),
                _ => None,
            },
        });
        match (objection, asked, page) {
            (Some(cause), ..) => Err(context.refuse(cause)),
            (None, Asked::Account, _) => Ok(Authorized::Account(AccountGranted { context, grant })),
            (None, Asked::Calls(_), Some(page)) => {
                Ok(Authorized::Calls(CallsGranted::new(context, grant, page)))
            }
            (None, Asked::Call(id), _) => {
                Ok(Authorized::Call(CallGranted::new(context, grant, id)))
            }
            // An order without its checks of parameters, cursor or resource would come to this.
            (None, Asked::Calls(_) | Asked::Wrongly(..) | Asked::NoCall(_), _) => {
                Err(context.refuse(Cause::HostGaveUp))
            }
        }
    }
}

fn page_query(
    list: &ListCalls,
    grant: &Grant,
    cursors: &CursorKeys,
) -> Result<PageQuery, CursorFault> {
    match &list.cursor {
        None => Ok(PageQuery::first(list.window, list.limit)),
        Some(text) => {
            let cursor = cursors.open(grant.account_id(), grant.mode(), text)?;
            PageQuery::next(cursor, list.window, list.limit)
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
            pub fn internal_error(self) -> Refusal {
                self.context.refuse(Cause::HostGaveUp)
            }
        })+
    };
}

states!(Received, Identified, Admitted);

/// What goes along through all states, and into every answer.
#[derive(Debug)]
struct Context {
    request_id: RequestId,
    operation: Option<Operation>,
    credential_id: Option<CredentialId>,
    head_only: bool,
}

impl Context {
    fn refuse(self, cause: Cause) -> Refusal {
        let Self { request_id, operation, credential_id, head_only } = self;
        Refusal { cause, request_id, operation, credential_id, head_only }
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
