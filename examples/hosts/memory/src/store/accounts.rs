//! An account's row.

use std::collections::BTreeSet;

use call_assistant::id::CredentialId;
use call_assistant::model::Call;
use call_assistant::rest::Mode;
use call_assistant::rest::server::CallRow;

use super::Calls;
use host::store::{Account, Done, Refused};

/// One account, and what belongs to it.
#[derive(Debug)]
pub struct AccountRow {
    pub account: Account,
    pub(super) keys: Vec<CredentialId>,
    pub(super) endpoints: Vec<u32>,
    pub(super) deliveries: BTreeSet<u64>,
    live: Calls,
    test: Calls,
}

impl AccountRow {
    /// Counts its keys.
    pub fn count_keys(&self) -> usize {
        self.keys.len()
    }

    /// Creates an account with nothing in it.
    pub fn new(account: Account) -> Self {
        Self {
            account,
            keys: Vec::new(),
            endpoints: Vec::new(),
            deliveries: BTreeSet::new(),
            live: Calls::default(),
            test: Calls::default(),
        }
    }

    /// Checks that its plan has webhooks.
    ///
    /// # Errors
    /// It has none.
    pub(super) fn check_webhooks(&self) -> Done<()> {
        self.account.plan.webhooks.check_webhooks().map_err(Refused::Plan)
    }

    /// Returns a call of it, as the public API looks it up.
    pub fn call_row(&self, mode: Mode, call: Call) -> CallRow {
        CallRow { account_id: self.account.id.clone(), mode, call }
    }

    /// Returns it as the dashboard has it.
    pub fn shown(&self) -> Account {
        let calls = u64::try_from(self.live.len()).unwrap_or(u64::MAX);
        Account { calls, ..self.account.clone() }
    }

    /// Returns its calls: test keys reach test data, and nothing else.
    pub fn calls(&self, mode: Mode) -> &Calls {
        match mode {
            Mode::Live => &self.live,
            Mode::Test => &self.test,
        }
    }

    /// Returns its calls, to add one.
    pub fn calls_mut(&mut self, mode: Mode) -> &mut Calls {
        match mode {
            Mode::Live => &mut self.live,
            Mode::Test => &mut self.test,
        }
    }
}
