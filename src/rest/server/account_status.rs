//! The state of an account.

use crate::id::AccountId;

/// The facts about an account that decide whether the API serves the account's requests.
///
/// ```
/// use call_assistant::id::AccountId;
/// use call_assistant::rest::server::AccountStatus;
///
/// let status = AccountStatus {
///     account_id: AccountId::parse("acct_1")?,
///     closing: false,
///     subscribed: true,
///     api_in_plan: true,
/// };
/// # Ok::<(), call_assistant::TextError>(())
/// ```
///
/// Closed: a host compiles only if it fills in every field. No field has a safe default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountStatus {
    /// The account. If this account is not the credential's account, the store is at fault and the response
    /// is 500.
    pub account_id: AccountId,
    /// Whether the account is scheduled for deletion.
    pub closing: bool,
    /// Whether the account has an active subscription.
    pub subscribed: bool,
    /// Whether the account's plan includes the public REST API.
    pub api_in_plan: bool,
}
