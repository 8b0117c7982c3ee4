//! The number of requests a minute that a credential may make, for each kind of request.

use core::num::NonZeroU16;
use core::time::Duration;

/// The maximum number of requests in a minute with one credential.
///
/// Requests are counted separately for each quota. Listing and retrieving calls share [`READS`](Self::READS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    kind: Kind,
    per_minute: NonZeroU16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Account,
    Reads,
}

impl Quota {
    /// `GET /v1/account`: 60 requests a minute.
    pub const ACCOUNT: Self =
        Self { kind: Kind::Account, per_minute: NonZeroU16::new(60).unwrap() };

    /// The list of calls and single calls, together: 600 requests a minute.
    pub const READS: Self = Self { kind: Kind::Reads, per_minute: NonZeroU16::new(600).unwrap() };

    /// The span of a quota: 60 seconds. The service never admits more requests in a period of this length
    /// than the quota allows.
    pub const SPAN: Duration = Duration::from_secs(60);

    /// Returns this quota with another number of requests, for a customer with another limit or for a test.
    /// A service with a changed quota must pass its decision about each request to
    /// `Identified::admit_decided`.
    #[must_use]
    pub const fn with_per_minute(self, per_minute: NonZeroU16) -> Self {
        Self { kind: self.kind, per_minute }
    }

    /// Returns the number of requests a minute that the quota admits.
    #[must_use]
    pub const fn per_minute(self) -> u16 {
        self.per_minute.get()
    }

    /// Returns `account` or `reads`. A host stores the recent requests of a credential under this name and
    /// the credential's id.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.kind {
            Kind::Account => "account",
            Kind::Reads => "reads",
        }
    }
}
