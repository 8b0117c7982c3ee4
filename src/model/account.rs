//! The customer's account.

use alloc::string::String;

use serde::Serialize;

use crate::id::AccountId;
use crate::json::{json_body, read_object};

/// The account that a credential belongs to. Nothing beyond these fields is exposed.
///
/// ```
/// use call_assistant::model::Account;
///
/// let account = Account::from_json(
///     br#"{"id":"acct_1","business_name":null,"timezone":"Europe/Oslo","livemode":true}"#,
/// )?;
/// assert_eq!(account.timezone, "Europe/Oslo");
/// # Ok::<(), call_assistant::json::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Account {
    /// Which account.
    pub id: AccountId,
    /// The business's name.
    pub business_name: Option<String>,
    /// An IANA timezone name, such as `Europe/Oslo`.
    ///
    /// Every local time without an offset that concerns this account (an opening hour, a time of
    /// day in a summary) is meant in it. Timestamps are in UTC and need no timezone.
    pub timezone: String,
    /// Whether the credential reaches production data: false exactly for a test-mode key.
    pub livemode: bool,
}

impl Account {
    /// An account in production mode without a business name.
    #[must_use]
    pub fn new(id: AccountId, timezone: impl Into<String>) -> Self {
        Self { id, business_name: None, timezone: timezone.into(), livemode: true }
    }
}

read_object!(Account {
    id: required,
    business_name: nullable,
    timezone: required,
    livemode: required
});
json_body!(Account);
