//! Authorised requests: what to look up for each, and its response.

use alloc::vec::Vec;

use http::Response;

use super::Context;
use crate::id::AccountId;
use crate::model::{Account, CallList};
use crate::rest::server::cursor::CursorKey;
use crate::rest::server::query::{CallQuery, CallRow, CallsQuery};
use crate::rest::server::{Grant, Rejection, RejectionReason};

/// A request that may be answered, by operation.
///
/// ```
/// use call_assistant::rest::server::{Authorized, CallQuery, CallRow, CallsQuery, Rejection};
/// use call_assistant::{id::AccountId, model::Account};
/// use http::Response;
///
/// # struct Db;
/// # impl Db {
/// #     fn account(&self, id: &AccountId) -> Result<Account, ()> { Err(()) }
/// #     fn page(&self, query: &CallsQuery) -> Result<Vec<CallRow>, ()> { Err(()) }
/// #     fn call(&self, query: &CallQuery) -> Result<Option<CallRow>, ()> { Err(()) }
/// # }
/// fn answer(authorized: Authorized, db: &Db) -> Result<Response<Vec<u8>>, Rejection> {
///     match authorized {
///         Authorized::Account(granted) => {
///             let account = db.account(granted.account_id()).map_err(|()| granted.internal_error())?;
///             granted.answer(account)
///         }
///         Authorized::Calls(granted) => {
///             let rows = db.page(granted.query()).map_err(|()| granted.internal_error())?;
///             granted.answer(rows)
///         }
///         Authorized::Call(granted) => {
///             let row = db.call(granted.query()).map_err(|()| granted.internal_error())?;
///             granted.answer(row)
///         }
///         new => Err(new.internal_error()), // an operation of a later version
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Authorized {
    /// `GET /v1/account`.
    Account(AccountGranted),
    /// `GET /v1/calls`.
    Calls(CallsGranted),
    /// `GET /v1/calls/{call_id}`.
    Call(CallGranted),
}

impl Authorized {
    /// Creates the 500 of a host whose look-up failed.
    #[must_use]
    pub fn internal_error(&self) -> Rejection {
        match self {
            Self::Account(granted) => granted.internal_error(),
            Self::Calls(granted) => granted.internal_error(),
            Self::Call(granted) => granted.internal_error(),
        }
    }
}

/// An authorised `GET /v1/account`.
#[derive(Debug)]
pub struct AccountGranted {
    pub(super) context: Context,
    pub(super) grant: Grant,
}

impl AccountGranted {
    /// Returns the account to look up.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        self.grant.account_id()
    }

    /// Writes the response. `livemode` is that of the credential, whatever the record says.
    ///
    /// # Errors
    /// The record is another account's: 500.
    pub fn answer(self, account: Account) -> Result<Response<Vec<u8>>, Rejection> {
        if account.id != *self.grant.account_id() {
            return Err(self.context.reject(RejectionReason::WrongAccount));
        }
        let mut account = account;
        account.livemode = self.grant.mode().is_live();
        Ok(self.context.respond(&account))
    }
}

/// An authorised `GET /v1/calls`.
///
/// ```
/// use call_assistant::rest::server::{CallRow, CallsGranted, CallsQuery, Rejection};
/// use http::Response;
///
/// # fn db(query: &CallsQuery) -> Result<Vec<CallRow>, std::io::Error> { Ok(vec![]) }
/// fn answer(granted: CallsGranted) -> Result<Response<Vec<u8>>, Rejection> {
///     let rows = db(granted.query()).map_err(|_| granted.internal_error())?; // 500
///     granted.answer(rows)
/// }
/// ```
#[derive(Debug)]
pub struct CallsGranted {
    pub(super) context: Context,
    pub(super) query: CallsQuery,
    /// The key that seals the next cursor. A copy, so that the state borrows nothing across a look-up.
    pub(super) cursor_key: CursorKey,
}

impl CallsGranted {
    /// Returns what to look up.
    #[must_use]
    pub fn query(&self) -> &CallsQuery {
        &self.query
    }

    /// Writes the response from the rows that match the query, in order, at most
    /// [`CallsQuery::rows_to_read`] of them.
    ///
    /// # Errors
    /// A row belongs to another account, or the rows do not match the query: 500. None of them is
    /// served.
    pub fn answer(self, rows: Vec<CallRow>) -> Result<Response<Vec<u8>>, Rejection> {
        let (calls, next) = self
            .query
            .page(rows)
            .map_err(|reason| self.context.reject(RejectionReason::Rows(reason)))?;
        let grant = self.query.grant();
        let seal = |cursor| self.cursor_key.seal(grant.account_id(), grant.mode(), &cursor);
        Ok(self.context.respond(&CallList::new(calls, next.map(seal))))
    }
}

/// An authorised `GET /v1/calls/{call_id}`.
#[derive(Debug)]
pub struct CallGranted {
    pub(super) context: Context,
    pub(super) query: CallQuery,
}

impl CallGranted {
    /// Returns what to look up.
    #[must_use]
    pub fn query(&self) -> &CallQuery {
        &self.query
    }

    /// Writes the response.
    ///
    /// # Errors
    /// There is no such call, or it belongs to another account or mode: the same 404. It is a call
    /// with another id: 500.
    pub fn answer(self, row: Option<CallRow>) -> Result<Response<Vec<u8>>, Rejection> {
        let Some(row) = row else {
            return Err(self.context.reject(RejectionReason::NoSuchCall));
        };
        if row.call.id != *self.query.call_id() {
            return Err(self.context.reject(RejectionReason::WrongCall));
        }
        if !row.belongs_to(self.query.grant()) {
            return Err(self.context.reject(RejectionReason::NotTheirCall));
        }
        Ok(self.context.respond(&row.call))
    }
}
