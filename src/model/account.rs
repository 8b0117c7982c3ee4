//! The customer's account.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use crate::id::AccountId;
use crate::json::{self, ParseError, deserialize, json_object};

json_object! {
    /// The account that a credential belongs to. The API shows only these fields of an account.
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
        /// The account's id.
        pub id: AccountId,
        /// The business's name.
        pub business_name: Option<String>,
        /// An IANA timezone name, such as `Europe/Oslo`.
        ///
        /// The account's local times, such as opening hours, are in this timezone. A [calendar
        /// day](crate::guide::reading#the-calls-of-a-day) of the business begins at midnight in
        /// this timezone. Timestamps are in UTC.
        pub timezone: String,
        /// Whether the credential gives access to production data. For a test key, the value is
        /// false.
        pub livemode: bool,
    }
}

impl Account {
    /// Creates an account in production mode without a business name.
    #[must_use]
    pub fn new(id: AccountId, timezone: impl Into<String>) -> Self {
        Self { id, business_name: None, timezone: timezone.into(), livemode: true }
    }

    /// Reads an account from JSON, by the rules in [`json`](crate::json).
    ///
    /// # Errors
    /// Returns the fault of the JSON and its position, but not the received value.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ParseError> {
        json::read(bytes)
    }

    /// Writes an account as JSON without spaces.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

deserialize!(Account);
