//! Authorised requests, each with its query and its response.

use alloc::vec::Vec;

use http::Response;

use super::{CallsQuery, Context};
use crate::id::{AccountId, CallId};
use crate::model::Account;
use crate::rest::Mode;
use crate::rest::server::call_row::Owner;
use crate::rest::server::{CallRow, Rejection, RejectionReason};

/// A request that may be answered. Each operation has a variant.
///
/// ```
/// use call_assistant::rest::server::{Authorized, Rejection};
/// use http::Response;
///
/// # use call_assistant::rest::server::{CallQuery, CallRow, CallsQuery};
/// # use call_assistant::{id::AccountId, model::Account};
/// # struct Db;
/// # impl Db {
/// #     fn account(&self, id: &AccountId) -> Result<Account, ()> { Err(()) }
/// #     fn page(&self, query: &CallsQuery) -> Result<Vec<CallRow>, ()> { Err(()) }
/// #     fn call(&self, query: &CallQuery) -> Result<Option<CallRow>, ()> { Err(()) }
/// # }
/// fn answer(authorized: Authorized, db: &Db) -> Result<Response<Vec<u8>>, Rejection> {
///     match authorized {
///         Authorized::Account(query) => {
///             let account = db.account(query.account_id()).map_err(|()| query.internal_error())?;
///             query.answer(account)
///         }
///         Authorized::Calls(query) => {
///             let rows = db.page(&query).map_err(|()| query.internal_error())?;
///             query.answer(rows)
///         }
///         Authorized::Call(query) => {
///             let row = db.call(&query).map_err(|()| query.internal_error())?;
///             query.answer(row)
///         }
///         new => Err(new.internal_error()), // an operation of a later version
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Authorized {
    /// `GET /v1/account`.
    Account(AccountQuery),
    /// `GET /v1/calls`.
    Calls(CallsQuery),
    /// `GET /v1/calls/{call_id}`.
    Call(CallQuery),
}

impl Authorized {
    /// Creates the rejection with 500 for a failed look-up.
    #[must_use]
    pub fn internal_error(&self) -> Rejection {
        match self {
            Self::Account(query) => query.internal_error(),
            Self::Calls(query) => query.internal_error(),
            Self::Call(query) => query.internal_error(),
        }
    }
}

/// The query for the account of a credential, for `GET /v1/account`.
#[derive(Debug)]
pub struct AccountQuery {
    pub(super) context: Context,
    pub(super) owner: Owner,
}

impl AccountQuery {
    /// Writes the response. The `livemode` of the response comes from the credential, not from `account`.
    ///
    /// # Errors
    /// If `account` is not the credential's account, the response is 500.
    pub fn answer(self, mut account: Account) -> Result<Response<Vec<u8>>, Rejection> {
        if account.id != self.owner.account_id {
            return Err(self.context.reject(RejectionReason::WrongAccount));
        }
        account.livemode = self.owner.mode.is_live();
        Ok(self.context.respond(&account))
    }

    /// Returns the id of the credential's account. Look up only data of this account.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        &self.owner.account_id
    }

    /// Creates the rejection with 500 for a failed look-up.
    #[must_use]
    pub fn internal_error(&self) -> Rejection {
        self.context.reject(RejectionReason::Internal)
    }
}

/// The query for one call of one account in one mode, for `GET /v1/calls/{call_id}`.
///
/// ```sql
#[doc = include_str!("../../../guide/sql/server/call.sql")]
/// ```
///
/// Like a [`CallsQuery`], this query comes only from an authorised request.
#[derive(Debug)]
pub struct CallQuery {
    pub(super) context: Context,
    pub(super) owner: Owner,
    pub(super) call_id: CallId,
}

impl CallQuery {
    /// Returns the mode of the data to select: production or test data.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.owner.mode
    }

    /// Returns the id of the call.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// Returns whether a row is the requested call, for a store in memory.
    #[must_use]
    pub fn matches(&self, row: &CallRow) -> bool {
        row.belongs_to(&self.owner) && row.call.id == self.call_id
    }

    /// Writes the response.
    ///
    /// # Errors
    /// If `row` is `None`, or belongs to another account or mode, the response is 404 in all these cases. If
    /// `row` has another id, the response is 500.
    pub fn answer(self, row: Option<CallRow>) -> Result<Response<Vec<u8>>, Rejection> {
        let reason = match row {
            None => RejectionReason::NoSuchCall,
            Some(row) if row.call.id != self.call_id => RejectionReason::WrongCall,
            Some(row) if !row.belongs_to(&self.owner) => RejectionReason::NotTheirCall,
            Some(row) => return Ok(self.context.respond(&row.call)),
        };
        Err(self.context.reject(reason))
    }

    /// Returns the id of the credential's account. Look up only data of this account.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        &self.owner.account_id
    }

    /// Creates the rejection with 500 for a failed look-up.
    #[must_use]
    pub fn internal_error(&self) -> Rejection {
        self.context.reject(RejectionReason::Internal)
    }
}
