//! Which plans include webhooks and recovery.

/// What an account's plan includes of webhooks.
///
/// Map your price list to it, and check it where work begins. Deliveries that are pending are still
/// sent after a downgrade, because they were accepted.
///
/// ```
/// use call_assistant::webhook::sender::{PlanError, RecoveryCaller, WebhookPlan};
///
/// assert_eq!(WebhookPlan::BelowPro.check_webhooks(), Err(PlanError::Webhooks));
/// assert_eq!(WebhookPlan::Pro.check_webhooks(), Ok(()));
///
/// // Recovery: enabling an endpoint and redelivering what it missed.
/// assert_eq!(WebhookPlan::Pro.check_recovery(RecoveryCaller::Dashboard), Ok(()));
/// let error = WebhookPlan::Pro.check_recovery(RecoveryCaller::Program).unwrap_err();
/// assert_eq!(error.to_string(), "plan lacks recovery");
/// ```
///
/// All variants are listed, so that a price list can be mapped by a `match`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WebhookPlan {
    /// A plan below Pro: no webhooks.
    BelowPro,
    /// Pro: webhooks, and recovery from the dashboard.
    Pro,
    /// Business: webhooks, and recovery from the dashboard and by program.
    Business,
}

/// Who asks for recovery.
///
/// All variants are listed: a caller is a person or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecoveryCaller {
    /// A person, in the dashboard.
    Dashboard,
    /// A program, through an API.
    Program,
}

/// What an account's plan lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Webhooks need Pro.
    #[error("plan lacks webhooks")]
    Webhooks,
    /// Recovery by program needs Business.
    #[error("plan lacks recovery")]
    Recovery,
}

impl WebhookPlan {
    /// Checks that an endpoint may be registered, an event accepted, or a ping sent.
    ///
    /// # Errors
    /// The plan is below Pro.
    pub fn check_webhooks(self) -> Result<(), PlanError> {
        match self {
            Self::BelowPro => Err(PlanError::Webhooks),
            Self::Pro | Self::Business => Ok(()),
        }
    }

    /// Checks that this caller may enable an endpoint or redeliver an event.
    ///
    /// # Errors
    /// The plan is below Pro, or below Business if a program asks.
    pub fn check_recovery(self, caller: RecoveryCaller) -> Result<(), PlanError> {
        self.check_webhooks()?;
        match (caller, self) {
            (RecoveryCaller::Program, Self::Pro) => Err(PlanError::Recovery),
            _ => Ok(()),
        }
    }
}
