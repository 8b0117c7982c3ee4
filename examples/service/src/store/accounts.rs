//! An account's row.

use std::collections::BTreeSet;

use call_assistant::id::{AccountId, CredentialId};
use call_assistant::model::Call;
use call_assistant::rest::Mode;
use call_assistant::rest::server::CallRow;

use super::Calls;
use host::plan::Plan;
use host::rows::Account;

/// One account.
#[derive(Debug)]
pub struct AccountRow {
    pub id: AccountId,
    pub business_name: Option<String>,
    pub timezone: String,
    pub plan: Plan,
    pub subscription_active: bool,
    pub closing: bool,
    pub(super) keys: Vec<CredentialId>,
    pub(super) endpoints: Vec<u32>,
    pub(super) deliveries: BTreeSet<u64>,
    live: Calls,
    test: Calls,
}

impl AccountRow {
    /// An account with nothing in it, on the largest plan.
    pub fn new(id: AccountId, timezone: impl Into<String>) -> Self {
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

    /// An account of a file, without its keys, endpoints and calls.
    pub(super) fn of(account: Account) -> Self {
        Self {
            business_name: account.business_name,
            plan: account.plan,
            subscription_active: account.subscription_active,
            closing: account.closing,
            ..Self::new(account.id, account.timezone)
        }
    }

    /// A call of it, as the public API looks it up.
    pub fn call_row(&self, mode: Mode, call: Call) -> CallRow {
        CallRow { account_id: self.id.clone(), mode, call }
    }

    /// As the dashboard has it.
    pub fn shown(&self) -> Account {
        Account {
            id: self.id.clone(),
            business_name: self.business_name.clone(),
            timezone: self.timezone.clone(),
            plan: self.plan,
            subscription_active: self.subscription_active,
            closing: self.closing,
            calls: u64::try_from(self.live.len()).unwrap_or(u64::MAX),
        }
    }

    /// Its calls: test keys reach test data, and nothing else.
    pub fn calls(&self, mode: Mode) -> &Calls {
        match mode {
            Mode::Live => &self.live,
            Mode::Test => &self.test,
        }
    }

    /// Its calls, to add one.
    pub fn calls_mut(&mut self, mode: Mode) -> &mut Calls {
        match mode {
            Mode::Live => &mut self.live,
            Mode::Test => &mut self.test,
        }
    }
}
