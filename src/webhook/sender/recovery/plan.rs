//! The plans of accounts, which may include webhooks and recovery.

use serde::{Deserialize, Serialize};

/// The part of an account's plan that concerns webhooks.
///
/// Map your price list to this type, and check the account's plan before each action of the
/// account. Pending deliveries are still sent after a downgrade, because their events were accepted
/// before it.
///
/// ```
/// use call_assistant::webhook::sender::{PlanError, RecoveryBy, WebhookPlan};
///
/// assert_eq!(WebhookPlan::Basic.check_webhooks(), Err(PlanError::Webhooks));
/// assert_eq!(WebhookPlan::Pro.check_webhooks(), Ok(()));
///
/// // Enabling an endpoint, or redelivering what it missed, through an API.
/// let error = WebhookPlan::Pro.check_recovery(RecoveryBy::Program).unwrap_err();
/// assert_eq!(error.to_string(), "plan lacks recovery");
/// ```
///
/// Closed: for each new plan, a host has to decide what the plan includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WebhookPlan {
    /// A plan below Pro, without webhooks.
    Basic,
    /// Pro, with webhooks, and with recovery from the dashboard.
    Pro,
    /// Business, with webhooks, and with recovery from the dashboard and by program.
    Business,
}

/// The caller who starts a recovery.
///
/// Closed: a caller is a person or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryBy {
    /// A person in the dashboard.
    Dashboard,
    /// A program, through an API.
    Program,
}

/// The feature that an account's plan lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Webhooks, which need Pro.
    #[error("plan lacks webhooks")]
    Webhooks,
    /// Recovery by program, which needs Business.
    #[error("plan lacks recovery")]
    Recovery,
}

impl WebhookPlan {
    /// Checks that the account may register an endpoint, accept an event or send a ping. If so, a person
    /// in the dashboard may also enable an endpoint and redeliver an event.
    ///
    /// # Errors
    /// Returns an error if the plan is below Pro.
    pub fn check_webhooks(self) -> Result<(), PlanError> {
        match self {
            Self::Basic => Err(PlanError::Webhooks),
            Self::Pro | Self::Business => Ok(()),
        }
    }

    /// Checks that the caller may enable an endpoint, redeliver an event or continue a recovery. For a
    /// person, [`check_webhooks`](Self::check_webhooks) decides. For a program, Business is necessary.
    ///
    /// # Errors
    /// Returns an error if the plan is below Pro for a person, or below Business for a program.
    pub fn check_recovery(self, by: RecoveryBy) -> Result<(), PlanError> {
        self.check_webhooks()?;
        match (by, self) {
            (RecoveryBy::Program, Self::Pro) => Err(PlanError::Recovery),
            _ => Ok(()),
        }
    }
}
