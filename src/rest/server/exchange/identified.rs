//! A request whose sender is known.

use core::time::Duration;

use super::{Admitted, Asked, Context};
use crate::Timestamp;
use crate::rest::Quota;
use crate::rest::server::Grant;
use crate::rest::server::{RateLimitError, RateLimitReason, RateWindow, RateWindows};
use crate::rest::server::{Rejection, RejectionReason};

/// A request of a valid credential.
#[derive(Debug)]
pub struct Identified {
    pub(super) context: Context,
    pub(super) asked: Asked,
    pub(super) grant: Grant,
    pub(super) used_at: Timestamp,
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
    /// whatever comes of the request: every admitted one counts, and a refused one does not. Hosts
    /// that share it do this [one at a time](crate::rest::server#where-to-keep-it).
    ///
    /// # Errors
    /// The quota is used up: 429, with the wait.
    pub fn admit(self, window: &mut RateWindow, now: Timestamp) -> Result<Admitted, Rejection> {
        let verdict = window.check(self.quota(), now);
        self.admitted(verdict)
    }

    /// [`admit`](Self::admit) for a host whose windows are all in one place.
    ///
    /// # Errors
    /// The quota is used up: 429, with the wait.
    pub fn admit_in(
        self,
        windows: &mut RateWindows,
        now: Timestamp,
    ) -> Result<Admitted, Rejection> {
        let verdict = windows.check(self.grant.credential_id(), self.quota(), now);
        self.admitted(verdict)
    }

    /// [`admit`](Self::admit) for a host that counts elsewhere: what it found is enough, and how
    /// long to wait if it is no.
    ///
    /// # Errors
    /// The quota is used up: 429, with the wait.
    pub fn admit_as(self, verdict: Result<(), Duration>) -> Result<Admitted, Rejection> {
        self.admitted(
            verdict.map_err(|wait| RateLimitError { wait, cause: RateLimitReason::Quota }),
        )
    }

    fn admitted(self, verdict: Result<(), RateLimitError>) -> Result<Admitted, Rejection> {
        match verdict {
            Ok(()) => Ok(Admitted { context: self.context, asked: self.asked, grant: self.grant }),
            Err(exceeded) => Err(self.context.refuse(RejectionReason::RateLimited(exceeded))),
        }
    }
}
