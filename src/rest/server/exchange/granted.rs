//! Authorised requests: what to look up for each, and its answer.

use alloc::vec::Vec;

use http::Response;

use super::Context;
use crate::id::{AccountId, CallId};
use crate::model::{Account, Call, CallList};
use crate::rest::ApiResponse;
use crate::rest::Mode;
use crate::rest::server::CursorKeys;
use crate::rest::server::Grant;
use crate::rest::server::PageQuery;
use crate::rest::server::rejection::{Rejection, RejectionReason, headless};

/// A request that may be answered, by what it asks for.
#[derive(Debug)]
pub enum Authorized {
    /// The account.
    Account(AccountGranted),
    /// A page of its calls.
    Calls(CallsGranted),
    /// One of its calls.
    Call(CallGranted),
}

impl Authorized {
    /// The 500 of a host whose look-up failed.
    #[must_use]
    pub fn internal_error(&self) -> Rejection {
        match self {
            Self::Account(granted) => granted.internal_error(),
            Self::Calls(granted) => granted.internal_error(),
            Self::Call(granted) => granted.internal_error(),
        }
    }
}

/// A call as a store holds it: with whose it is.
///
/// The public object does not say that, so a list in memory or a forgotten `WHERE` could serve one
/// customer's calls to another. Give back what the row says, not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// The account whose call it is.
    pub account_id: AccountId,
    /// Production or test data.
    pub mode: Mode,
    /// The call.
    pub call: Call,
}

impl CallRow {
    fn belongs_to(&self, grant: &Grant) -> bool {
        self.account_id == *grant.account_id() && self.mode == grant.mode()
    }
}

/// `GET /v1/account` of a credential that may.
#[derive(Debug)]
pub struct AccountGranted {
    pub(super) context: Context,
    pub(super) grant: Grant,
}

impl AccountGranted {
    /// Which account to look up.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        self.grant.account_id()
    }

    /// The answer. Whatever the record says, `livemode` is the credential's (D-12).
    ///
    /// # Errors
    /// The record is another account's: 500.
    pub fn answer(self, account: Account) -> Result<Response<Vec<u8>>, Rejection> {
        if account.id != *self.grant.account_id() {
            return Err(self.context.refuse(RejectionReason::WrongAccount));
        }
        let mut account = account;
        account.livemode = self.grant.mode().is_live();
        Ok(self.context.answer(&account))
    }
}

/// What to look up for `GET /v1/calls`: a page of one account's calls, in one mode.
///
/// There is no other way to one of these than through an exchange, so a store whose functions take
/// it cannot be asked without a credential, nor for no account in particular.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallsQuery {
    grant: Grant,
    page: PageQuery,
}

impl CallsQuery {
    /// Whose calls.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        self.grant.account_id()
    }

    /// Production or test data.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.grant.mode()
    }

    /// Which of them, and how many: see [`page`](crate::rest::server) for the SQL.
    #[must_use]
    pub fn page(&self) -> &PageQuery {
        &self.page
    }

    /// Whether a row is on this page or a later one: the whole condition, for a store in memory.
    #[must_use]
    pub fn matches(&self, row: &CallRow) -> bool {
        row.belongs_to(&self.grant) && self.page.matches(&row.call)
    }
}

/// `GET /v1/calls` of a credential that may.
///
/// ```
/// use call_assistant::rest::server::{CallRow, CallsGranted, CallsQuery, CursorKeys, Rejection};
/// use http::Response;
///
/// # fn db(query: &CallsQuery) -> Result<Vec<CallRow>, std::io::Error> { Ok(vec![]) }
/// fn answer(granted: CallsGranted, keys: &CursorKeys) -> Result<Response<Vec<u8>>, Rejection> {
///     let rows = db(granted.query()).map_err(|_| granted.internal_error())?; // 500
///     granted.answer(rows, keys)
/// }
/// ```
#[derive(Debug)]
pub struct CallsGranted {
    pub(super) context: Context,
    query: CallsQuery,
}

impl CallsGranted {
    pub(super) fn new(context: Context, grant: Grant, page: PageQuery) -> Self {
        Self { context, query: CallsQuery { grant, page } }
    }

    /// What to look up.
    #[must_use]
    pub fn query(&self) -> &CallsQuery {
        &self.query
    }

    /// The answer, from the rows as the store gave them: in order, and one more than the page
    /// holds if there is one ([`PageQuery::fetch`]).
    ///
    /// # Errors
    /// A row is another account's, or they are not the rows that were asked for: 500. Nothing of
    /// them is served.
    pub fn answer(
        self,
        rows: Vec<CallRow>,
        cursors: &CursorKeys,
    ) -> Result<Response<Vec<u8>>, Rejection> {
        let CallsQuery { grant, page } = &self.query;
        if let Some(row) = rows.iter().position(|row| !row.belongs_to(grant)) {
            return Err(self.context.refuse(RejectionReason::WrongOwner { row }));
        }
        let calls = rows.into_iter().map(|row| row.call).collect();
        let page = match page.page(calls) {
            Ok(page) => page,
            Err(error) => return Err(self.context.refuse(RejectionReason::Rows(error))),
        };
        let seal = |cursor| cursors.seal(grant.account_id(), grant.mode(), &cursor);
        Ok(self.context.answer(&CallList::new(page.calls, page.next.map(seal))))
    }
}

/// What to look up for `GET /v1/calls/{call_id}`: one call of one account, in one mode. Like
/// [`CallsQuery`], it comes out of an exchange only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallQuery {
    grant: Grant,
    call_id: CallId,
}

impl CallQuery {
    /// Whose call.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        self.grant.account_id()
    }

    /// Production or test data.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.grant.mode()
    }

    /// Which call.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// Whether a row is the call: the whole condition, for a store in memory.
    #[must_use]
    pub fn matches(&self, row: &CallRow) -> bool {
        row.belongs_to(&self.grant) && row.call.id == self.call_id
    }
}

/// `GET /v1/calls/{call_id}` of a credential that may.
#[derive(Debug)]
pub struct CallGranted {
    pub(super) context: Context,
    query: CallQuery,
}

impl CallGranted {
    pub(super) fn new(context: Context, grant: Grant, call_id: CallId) -> Self {
        Self { context, query: CallQuery { grant, call_id } }
    }

    /// What to look up.
    #[must_use]
    pub fn query(&self) -> &CallQuery {
        &self.query
    }

    /// The answer, from what the store has.
    ///
    /// # Errors
    /// It has no such call, or it is another account's or of the other mode: one and the same 404
    /// (HTTP-7). It is a call of another id: 500.
    pub fn answer(self, row: Option<CallRow>) -> Result<Response<Vec<u8>>, Rejection> {
        let Some(row) = row else {
            return Err(self.context.refuse(RejectionReason::NoSuchCall));
        };
        if row.call.id != self.query.call_id {
            return Err(self.context.refuse(RejectionReason::WrongCall));
        }
        if !row.belongs_to(&self.query.grant) {
            return Err(self.context.refuse(RejectionReason::NotTheirCall));
        }
        Ok(self.context.answer(&row.call))
    }
}

impl Context {
    fn answer(self, answer: &impl ApiResponse) -> Response<Vec<u8>> {
        headless(answer.to_response(&self.request_id), self.head_only)
    }
}
