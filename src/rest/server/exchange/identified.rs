//! A request whose sender is known.

use core::time::Duration;

use super::{Admitted, Asked, Context};
use crate::Timestamp;
use crate::id::{AccountId, CredentialId};
use crate::rest::server::rate::{RateLimitError, RateLimitReason, RateWindows};
use crate::rest::server::{Grant, Rejection, RejectionReason};
use crate::rest::{Operation, Quota};

/// A request with a valid credential, which has not been counted.
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::rest::server::{Admitted, Identified, RateWindows, Rejection};
///
/// fn count(
///     identified: Identified,
///     rates: &mut RateWindows,
///     now: Timestamp,
/// ) -> Result<Admitted, Rejection> {
///     println!("{} used at {}", identified.credential_id(), identified.used_at());
///     identified.admit(rates, now) // 429
/// }
/// ```
#[derive(Debug)]
pub struct Identified {
    pub(super) context: Context,
    pub(super) operation: Operation,
    pub(super) asked: Result<Asked, RejectionReason>,
    pub(super) grant: Grant,
    pub(super) used_at: Timestamp,
}

impl Identified {
    /// Returns the credential. Rates are counted by it.
    #[must_use]
    pub fn credential_id(&self) -> &CredentialId {
        self.grant.credential_id()
    }

    /// Returns the account of the credential.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        self.grant.account_id()
    }

    /// Returns when the credential was used, for [`StoredKey::note_use`](super::super::StoredKey::note_use).
    #[must_use]
    pub fn used_at(&self) -> Timestamp {
        self.used_at
    }

    /// Returns the quota that the request counts against.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.operation.quota()
    }

    /// Counts the request in the window of its credential and quota, which the table finds. An admitted
    /// request counts, whatever the response will be; a rejected one does not.
    ///
    /// # Errors
    /// The quota is used up: 429, with the wait.
    pub fn admit(self, windows: &mut RateWindows, now: Timestamp) -> Result<Admitted, Rejection> {
        let checked = windows.check(self.grant.credential_id(), self.quota(), now);
        self.admitted(checked)
    }

    /// Continues with a decision made elsewhere for this credential and quota, such as by [the function in
    /// SQL](RateWindows#in-sql), or with a refusal that [still holds](RateLimitError::until): `Err` holds
    /// the time to wait.
    ///
    /// # Errors
    /// The quota is used up: 429, with the wait.
    pub fn admit_decided(self, checked: Result<(), Duration>) -> Result<Admitted, Rejection> {
        let error = |wait| RateLimitError { wait, reason: RateLimitReason::Quota };
        self.admitted(checked.map_err(error))
    }

    fn admitted(self, checked: Result<(), RateLimitError>) -> Result<Admitted, Rejection> {
        let Self { context, operation, asked, grant, .. } = self;
        match checked {
            Ok(()) => Ok(Admitted { context, operation, asked, grant }),
            Err(error) => Err(context.reject(RejectionReason::RateLimited(error))),
        }
    }
}
