//! A request that counts.

use super::{AccountGranted, Asked, Authorized, CallGranted, CallsGranted, Context};
use crate::id::AccountId;
use crate::rest::Operation;
use crate::rest::server::query::{CallQuery, CallsQuery};
use crate::rest::server::{AccountStatus, CursorKeys, Grant, Rejection, RejectionReason};

/// A request that has been counted, and whose account is to be looked up.
///
/// ```
/// use call_assistant::rest::server::{AccountStatus, Admitted, Authorized, CursorKeys, Rejection};
///
/// fn authorize(
///     admitted: Admitted,
///     status: &AccountStatus, // of admitted.account_id()
///     keys: &CursorKeys,
/// ) -> Result<Authorized, Rejection> {
///     admitted.authorize(status, keys) // 403, 402, 400, 404
/// }
/// ```
#[derive(Debug)]
pub struct Admitted {
    pub(super) context: Context,
    pub(super) operation: Operation,
    pub(super) asked: Result<Asked, RejectionReason>,
    pub(super) grant: Grant,
}

impl Admitted {
    /// Returns the account whose status to look up.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        self.grant.account_id()
    }

    /// Decides whether the account and the credential may have what is asked for, and whether the
    /// parameters are valid.
    ///
    /// # Errors
    /// The first check that fails, in the [documented order](crate::rest::server#order-of-checks). The status of
    /// another account: 500.
    pub fn authorize(
        self,
        status: &AccountStatus,
        cursors: &CursorKeys,
    ) -> Result<Authorized, Rejection> {
        let Self { context, operation, asked, grant } = self;
        if status.account_id != *grant.account_id() {
            return Err(context.reject(RejectionReason::WrongAccount));
        }
        // D-1: the most final state comes first, so nobody debugs scopes on a closing account.
        if status.closing {
            return Err(context.reject(RejectionReason::AccountClosing));
        }
        if !status.subscribed {
            return Err(context.reject(RejectionReason::NoSubscription));
        }
        if !status.api_in_plan {
            return Err(context.reject(RejectionReason::PlanLacksApi));
        }
        let scope = operation.scope();
        if !grant.allows(&scope) {
            return Err(context.reject(RejectionReason::ScopeMissing(scope)));
        }
        match asked.map_err(|reason| context.reject(reason))? {
            Asked::Account => Ok(Authorized::Account(AccountGranted { context, grant })),
            Asked::Calls(list) => match CallsQuery::new(grant, &list, cursors) {
                Ok(query) => {
                    let cursor_key = cursors.signing_key().clone();
                    Ok(Authorized::Calls(CallsGranted { context, query, cursor_key }))
                }
                Err(error) => Err(context.reject(RejectionReason::Cursor(error))),
            },
            Asked::Call(call_id) => {
                let query = CallQuery::new(grant, call_id);
                Ok(Authorized::Call(CallGranted { context, query }))
            }
        }
    }
}
