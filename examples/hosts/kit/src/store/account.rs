//! Accounts, the logins to them, and what was done to them.

use call_assistant::Timestamp;
use call_assistant::id::AccountId;
use call_assistant::model::Call;
use call_assistant::rest::ApiKey;
use call_assistant::rest::server::StoredKey;
use serde::Serialize;
use serde_json::Value;

use super::Listed;
use super::NewEndpoint;
use super::plan::Plan;

/// One account.
#[derive(Clone, Debug)]
pub struct Account {
    pub id: AccountId,
    pub business_name: Option<String>,
    pub timezone: String,
    pub plan: Plan,
    pub subscription_active: bool,
    pub closing: bool,
    /// How many live calls it has.
    pub calls: u64,
}

/// What changes of an account: the fields that are given.
#[derive(Clone, Debug, Default)]
pub struct AccountChange {
    pub timezone: Option<String>,
    pub plan: Option<Plan>,
    pub subscription_active: Option<bool>,
    pub closing: Option<bool>,
}

/// An account to begin with, of a `--data` file or the demonstration. It is consistent in itself:
/// no id or secret comes twice, and only plans with webhooks have endpoints.
#[derive(Debug)]
pub struct NewAccount {
    pub account: Account,
    /// With their secrets, for the first line that the host prints.
    pub keys: Vec<(StoredKey, ApiKey)>,
    pub endpoints: Vec<NewEndpoint>,
    pub calls: Vec<Call>,
    /// What test keys reach.
    pub test_calls: Vec<Call>,
}

/// Accounts, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct AccountPage {
    pub rows: Vec<Listed<Account>>,
    /// Where the next page begins, in words of the store's own. `None` on the last page.
    pub next: Option<String>,
}

/// Keys of an account, oldest first.
#[derive(Clone, Debug, Default)]
pub struct KeyPage {
    pub rows: Vec<Listed<StoredKey>>,
    /// Where the next page begins, in words of the store's own. `None` on the last page, and of the newest.
    pub next: Option<String>,
    /// Whether there are others: behind this page, or before the newest.
    pub more: bool,
}

/// A part of a list, of so many rows at most.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// Those behind the `next` of another page, or the first.
    After(Option<&'a str>, usize),
    /// The last.
    Newest(usize),
}

/// A login that is stored: an owner's link, or an operator's login that has ended.
#[derive(Clone, Debug)]
pub struct LoginRow {
    /// The account that it is bound to; `None` for an operator's.
    pub account: Option<AccountId>,
    pub expires_at: Timestamp,
    pub ended: bool,
}

/// Something that an operator or an owner has done.
#[derive(Clone, Debug, Serialize)]
pub struct JournalRow {
    /// Its place, in words of the store's own.
    pub position: String,
    pub at: Timestamp,
    pub by: String,
    /// A word that programs branch on, such as `key.revoked`.
    pub action: String,
    pub account_id: Option<String>,
    /// The id of what it was done to.
    pub target: String,
    /// What was changed, as it was and as it became. No secret is in it.
    pub before: Value,
    pub after: Value,
}
