//! An admitted request.

use super::{AccountQuery, Asked, Authorized, CallQuery, CallsQuery, Context};
use crate::id::AccountId;
use crate::rest::Scope;
use crate::rest::server::call_row::Owner;
use crate::rest::server::{AccountStatus, CursorKeys, Rejection, RejectionReason};

/// A request that has been counted against its quota. Next, the host looks up the request's account.
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
    pub(super) asked: Result<Asked, RejectionReason>,
    pub(super) owner: Owner,
    /// The scope of the operation, if the credential lacks it.
    pub(super) lacks: Option<Scope>,
}

impl Admitted {
    /// Decides whether the account and the credential allow the request, and whether the parameters
    /// are valid.
    ///
    /// # Errors
    /// Returns the rejection of the first check that fails, in the [documented
    /// order](crate::rest::server#order-of-checks). If the status belongs to another account, the
    /// response is 500.
    pub fn authorize(
        self,
        status: &AccountStatus,
        cursors: &CursorKeys,
    ) -> Result<Authorized, Rejection> {
        let Self { context, asked, owner, lacks } = self;
        let checked = if status.account_id != owner.account_id {
            Err(RejectionReason::WrongAccount)
        // D-1: the most final state comes first, so nobody debugs scopes on a closing account.
        } else if status.closing {
            Err(RejectionReason::AccountClosing)
        } else if !status.subscribed {
            Err(RejectionReason::NoSubscription)
        } else if !status.api_in_plan {
            Err(RejectionReason::PlanLacksApi)
        } else {
            lacks.map_or(asked, |scope| Err(RejectionReason::ScopeMissing(scope)))
        };
        match checked.map_err(|reason| context.reject(reason))? {
            Asked::Account => Ok(Authorized::Account(AccountQuery { context, owner })),
            Asked::Calls(list) => {
                CallsQuery::new(context, owner, &list, cursors).map(Authorized::Calls)
            }
            Asked::Call(call_id) => Ok(Authorized::Call(CallQuery { context, owner, call_id })),
        }
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
