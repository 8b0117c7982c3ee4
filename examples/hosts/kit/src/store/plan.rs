//! Plans, and what a key is for.

use call_assistant::Timestamp;
use call_assistant::rest::server::{KeyState, StoredKey};
use call_assistant::rest::{Mode, Scope};
use call_assistant::webhook::sender::WebhookPlan;

/// A plan by its name, and what it includes.
///
/// The specification names Pro and Business and leaves the price list to the service. This one
/// sells the public API with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub name: &'static str,
    pub public_api: bool,
    pub webhooks: WebhookPlan,
}

/// The price list.
pub const PLANS: [Plan; 4] = [
    Plan::NONE,
    Plan { name: "starter", public_api: false, webhooks: WebhookPlan::Basic },
    Plan { name: "pro", public_api: true, webhooks: WebhookPlan::Pro },
    Plan::LARGEST,
];

impl Plan {
    /// The plan of an account that pays for nothing.
    pub const NONE: Self = Self { name: "none", public_api: false, webhooks: WebhookPlan::Basic };

    /// The default plan.
    pub const LARGEST: Self =
        Self { name: "business", public_api: true, webhooks: WebhookPlan::Business };

    /// Finds the plan with this name.
    pub fn named(name: &str) -> Option<Self> {
        PLANS.into_iter().find(|plan| plan.name == name)
    }
}

/// Returns one word for what a key may do, as the demonstration names its keys.
pub fn key_state(key: &StoredKey, now: Timestamp) -> &'static str {
    let has = |scope| key.scopes.contains(&scope);
    match (key.state(now), key.mode, has(Scope::AccountRead), has(Scope::CallsRead)) {
        (KeyState::Revoked, ..) => "revoked",
        (KeyState::Expired, ..) => "expired",
        (KeyState::Valid, Mode::Test, ..) => "test",
        (KeyState::Valid, Mode::Live, true, true) => "full",
        (KeyState::Valid, Mode::Live, true, false) => "account only",
        (KeyState::Valid, Mode::Live, false, true) => "calls only",
        (KeyState::Valid, Mode::Live, false, false) => "none",
    }
}
