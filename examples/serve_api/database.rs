//! A database of one account, in memory. Each look-up may fail, like a look-up over a network.

use std::error::Error;

use call_assistant::id::{AccountId, CallId, CredentialId};
use call_assistant::model::{Account, Call};
use call_assistant::rest::server::{AccountStatus, CallQuery, CallRow, CallsQuery};
use call_assistant::rest::server::{CursorKeys, KeyDigest, StoredKey};
use call_assistant::rest::{ApiKey, Mode, Scope};
use call_assistant::{Product, Timestamp};

#[derive(Debug)]
pub(crate) struct Down;

pub(crate) struct Database {
    pub(crate) down: bool,
    pub(crate) keys: Vec<StoredKey>,
    /// Newest first.
    pub(crate) calls: Vec<CallRow>,
    account: Account,
    status: AccountStatus,
}

impl Database {
    /// Creates a database of one account with one call and a key. Also returns the key, because the
    /// database stores only the key's digest.
    pub(crate) fn new(key: [u8; 32], now: Timestamp) -> Result<(Self, ApiKey), Box<dyn Error>> {
        let account_id = AccountId::parse("acct_1")?;
        let key = ApiKey::from_random(&Product::default(), Mode::Test, key);
        let stored = StoredKey::new(CredentialId::parse("cred_1")?, account_id.clone(), &key, now)
            .with_scopes([Scope::AccountRead, Scope::CallsRead]);
        let database = Self {
            down: false,
            keys: vec![stored],
            calls: vec![CallRow {
                account_id: account_id.clone(),
                mode: Mode::Test,
                call: Call::new(CallId::parse("call_1")?, now, now),
            }],
            account: Account::new(account_id.clone(), "Europe/Oslo"),
            status: AccountStatus {
                account_id,
                closing: false,
                subscribed: true,
                api_in_plan: true,
            },
        };
        Ok((database, key))
    }

    pub(crate) fn key(&self, digest: Option<&KeyDigest>) -> Result<Option<StoredKey>, Down> {
        self.up()?;
        Ok(self.keys.iter().find(|key| Some(&key.digest) == digest).cloned())
    }

    pub(crate) fn status(&self, id: &AccountId) -> Result<AccountStatus, Down> {
        self.up()?;
        Some(&self.status).filter(|status| status.account_id == *id).cloned().ok_or(Down)
    }

    pub(crate) fn account(&self, id: &AccountId) -> Result<Account, Down> {
        self.up()?;
        Some(&self.account).filter(|account| account.id == *id).cloned().ok_or(Down)
    }

    pub(crate) fn calls(&self, query: &CallsQuery) -> Result<Vec<CallRow>, Down> {
        self.up()?;
        let rows = self.calls.iter().filter(|row| query.matches(row));
        Ok(rows.take(query.rows_to_read()).cloned().collect())
    }

    pub(crate) fn call(&self, query: &CallQuery) -> Result<Option<CallRow>, Down> {
        self.up()?;
        Ok(self.calls.iter().find(|row| query.matches(row)).cloned())
    }

    fn up(&self) -> Result<(), Down> {
        if self.down { Err(Down) } else { Ok(()) }
    }
}

pub(crate) fn cursor_keys(bytes: [u8; 32]) -> CursorKeys {
    CursorKeys::new(1, bytes)
}
