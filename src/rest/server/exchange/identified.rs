//! A request whose sender is known.

use core::time::Duration;

use super::{Admitted, Asked, Context};
use crate::Timestamp;
use crate::id::{AccountId, CredentialId};
use crate::rest::server::call_row::Owner;
use crate::rest::server::rate::{RateLimitError, RateLimitReason, RateWindows};
use crate::rest::server::{Rejection, RejectionReason};
use crate::rest::{Quota, Scope};

/// A request that has a valid credential and has not yet been counted against its quota.
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
    pub(super) quota: Quota,
    pub(super) asked: Result<Asked, RejectionReason>,
    pub(super) credential_id: CredentialId,
    pub(super) owner: Owner,
    pub(super) lacks: Option<Scope>,
    pub(super) used_at: Timestamp,
}

impl Identified {
    /// Returns the id of the credential. Requests are counted by this id.
    #[must_use]
    pub fn credential_id(&self) -> &CredentialId {
        &self.credential_id
    }

    /// Returns the instant of the request, for [`StoredKey::note_use`](super::super::StoredKey::note_use).
    #[must_use]
    pub fn used_at(&self) -> Timestamp {
        self.used_at
    }

    /// Returns the quota that the request counts against.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.quota
    }

    /// Counts the request in the rate window of its credential and quota. An admitted request counts, even if
    /// its response is an error. A refused request does not count.
    ///
    /// # Errors
    /// If the quota is used up or the table of windows is full, the response is 429, with the wait.
    pub fn admit(self, windows: &mut RateWindows, now: Timestamp) -> Result<Admitted, Rejection> {
        let checked = windows.check(&self.credential_id, self.quota, now);
        self.admitted(checked)
    }

    /// Continues with the decision that other code, such as [the function in SQL](RateWindows#in-sql), made
    /// for this credential and quota. During the wait of a previous refusal, you may pass the refusal again.
    /// `Err` contains the time to wait.
    ///
    /// ```
    /// use std::num::NonZeroU16;
    /// use call_assistant::Timestamp;
    /// use call_assistant::rest::server::{Admitted, Identified, RateWindows, Rejection};
    ///
    /// // A customer with a higher limit than the documented one.
    /// fn admit(it: Identified, rates: &mut RateWindows, now: Timestamp) -> Result<Admitted, Rejection> {
    ///     let quota = it.quota().with_per_minute(const { NonZeroU16::new(6_000).unwrap() });
    ///     let checked = rates.check(it.credential_id(), quota, now).map_err(|error| error.wait);
    ///     it.admit_decided(checked)
    /// }
    /// ```
    ///
    /// # Errors
    /// If the decision is a refusal, the response is 429, with the wait.
    pub fn admit_decided(self, checked: Result<(), Duration>) -> Result<Admitted, Rejection> {
        let error = |wait| RateLimitError { wait, reason: RateLimitReason::Decided };
        self.admitted(checked.map_err(error))
    }

    fn admitted(self, checked: Result<(), RateLimitError>) -> Result<Admitted, Rejection> {
        let Self { context, asked, owner, lacks, .. } = self;
        match checked {
            Ok(()) => Ok(Admitted { context, asked, owner, lacks }),
            Err(error) => Err(context.reject(RejectionReason::RateLimited(error))),
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
