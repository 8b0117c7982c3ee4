//! What an account's plan includes, as the service's checks need to know it.
//!
//! The specification names two plans, Pro and Business, and says of a third thing, the public API,
//! only that some plans include it. So a plan is no list of names here but what it entitles to:
//! the constructors give what the specification gives, and
//! [`with_public_api`](Entitlements::with_public_api) adds what a price list adds.
//!
//! ```
//! use call_assistant::rest::server::{Entitlements, Feature, NotInPlanError};
//!
//! let starter = Entitlements::below_pro();
//! assert_eq!(starter.require(Feature::Webhooks), Err(NotInPlanError(Feature::Webhooks)));
//!
//! let pro = Entitlements::pro().with_public_api();
//! assert_eq!(pro.require(Feature::Webhooks), Ok(()));
//! assert_eq!(pro.require(Feature::PublicApi), Ok(()));
//! assert_eq!(pro.require(Feature::Recovery).unwrap_err().to_string(), "plan lacks recovery");
//!
//! assert_eq!(Entitlements::business().require(Feature::Recovery), Ok(()));
//! ```

use core::fmt;

use serde::{Deserialize, Serialize};

/// What an account's plan includes. A field that a stored value lacks is not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Entitlements {
    /// The public REST API.
    pub public_api: bool,
    /// Webhooks: endpoints, deliveries, redelivery from the dashboard.
    pub webhooks: bool,
    /// Recovery and canonical re-fetch by program.
    pub recovery: bool,
}

/// Something a plan may include.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// The public REST API.
    PublicApi,
    /// Webhooks.
    Webhooks,
    /// Recovery and canonical re-fetch by program.
    Recovery,
}

/// The account's plan does not include it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plan lacks {0}")]
pub struct NotInPlanError(pub Feature);

impl Entitlements {
    /// A plan below Pro: no webhooks.
    #[must_use]
    pub const fn below_pro() -> Self {
        Self { public_api: false, webhooks: false, recovery: false }
    }

    /// The Pro plan: webhooks.
    #[must_use]
    pub const fn pro() -> Self {
        Self { public_api: false, webhooks: true, recovery: false }
    }

    /// The Business plan: webhooks, and recovery by program.
    #[must_use]
    pub const fn business() -> Self {
        Self { public_api: false, webhooks: true, recovery: true }
    }

    /// The same plan where it includes the public API.
    #[must_use]
    pub const fn with_public_api(self) -> Self {
        Self { public_api: true, ..self }
    }

    /// Whether the plan includes a feature.
    #[must_use]
    pub const fn include(&self, feature: Feature) -> bool {
        match feature {
            Feature::PublicApi => self.public_api,
            Feature::Webhooks => self.webhooks,
            Feature::Recovery => self.recovery,
        }
    }

    /// Passes where the plan includes a feature.
    ///
    /// # Errors
    /// The plan does not include it.
    pub fn require(&self, feature: Feature) -> Result<(), NotInPlanError> {
        if self.include(feature) { Ok(()) } else { Err(NotInPlanError(feature)) }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PublicApi => "the public API",
            Self::Webhooks => "webhooks",
            Self::Recovery => "recovery",
        })
    }
}
