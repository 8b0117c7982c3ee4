//! The state of an account.

use crate::id::AccountId;

/// The facts about an account that decide whether the API serves its requests.
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
/// Closed: a new field must not compile until the host fills it in. There is no default, because no
/// field has a value that is safe to assume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountStatus {
    /// The account. If the status belongs to another account, the store is at fault and the response is 500.
    pub account_id: AccountId,
    /// Whether the account is scheduled for deletion.
    pub closing: bool,
    /// Whether the account has an active subscription.
    pub subscribed: bool,
    /// Whether the account's plan includes the public REST API.
    pub api_in_plan: bool,
}
