//! An account's row, and the price list.

use std::collections::BTreeSet;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CredentialId};
use call_assistant::rest::server::{KeyState, StoredKey};
use call_assistant::rest::{Mode, Scope};
use call_assistant::webhook::sender::WebhookPlan;

use super::Calls;

/// One account.
#[derive(Debug)]
pub(crate) struct AccountRow {
    pub(crate) id: AccountId,
    pub(crate) business_name: Option<String>,
    pub(crate) timezone: String,
    pub(crate) plan: Plan,
    pub(crate) subscription_active: bool,
    pub(crate) closing: bool,
    pub(super) keys: Vec<CredentialId>,
    pub(super) endpoints: Vec<u32>,
    pub(super) deliveries: BTreeSet<u64>,
    live: Calls,
    test: Calls,
}

impl AccountRow {
    /// An account with nothing in it, on the largest plan.
    pub(crate) fn new(id: AccountId, timezone: impl Into<String>) -> Self {
        Self {
            id,
            business_name: None,
            timezone: timezone.into(),
            plan: Plan::LARGEST,
            subscription_active: true,
            closing: false,
            keys: Vec::new(),
            endpoints: Vec::new(),
            deliveries: BTreeSet::new(),
            live: Calls::default(),
            test: Calls::default(),
        }
    }

    /// Its calls: test keys reach test data, and nothing else.
    pub(crate) fn calls(&self, mode: Mode) -> &Calls {
        match mode {
            Mode::Live => &self.live,
            Mode::Test => &self.test,
        }
    }

    /// Its calls, to add one.
    pub(crate) fn calls_mut(&mut self, mode: Mode) -> &mut Calls {
        match mode {
            Mode::Live => &mut self.live,
            Mode::Test => &mut self.test,
        }
    }
}

/// A plan by its name, and what it includes.
///
/// The specification names Pro and Business and leaves the price list to the service. This one
/// sells the public API with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) public_api: bool,
    pub(crate) webhooks: WebhookPlan,
}

/// The price list.
pub(crate) const PLANS: [Plan; 4] = [
    Plan { name: "none", public_api: false, webhooks: WebhookPlan::BelowPro },
    Plan { name: "starter", public_api: false, webhooks: WebhookPlan::BelowPro },
    Plan { name: "pro", public_api: true, webhooks: WebhookPlan::Pro },
    Plan::LARGEST,
];

impl Plan {
    /// What an account has of which nothing else is said.
    pub(crate) const LARGEST: Self =
        Self { name: "business", public_api: true, webhooks: WebhookPlan::Business };

    /// The plan of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        PLANS.into_iter().find(|plan| plan.name == name)
    }
}

/// What a key is good for, in a word: how the demonstration's keys are told apart.
pub(crate) fn key_state(key: &StoredKey, now: Timestamp) -> &'static str {
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
