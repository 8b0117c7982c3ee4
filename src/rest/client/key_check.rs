//! Is this key any good? The first question after a customer has entered one.

use super::{ClientError, Remedy};
use crate::model::Account;

/// The answer to `GET /v1/account` as an answer about the key it was asked with.
///
/// A key that is good and an account that stands in the way are two things: who enters a key is
/// not helped by being told to enter another one when it is the plan that must change.
///
/// ```
/// use call_assistant::rest::client::{KeyCheck, Obstacle, read};
/// # let body = br#"{"error":{"code":"plan_upgrade_required","message":""}}"#;
/// # let (head, ()) = http::Response::builder().status(403).body(())?.into_parts();
///
/// match KeyCheck::from(read(&head, body)) {
///     KeyCheck::Valid(account) => println!("{}", account.id),
///     KeyCheck::Obstructed { by, .. } => assert_eq!(by, Obstacle::Plan),
///     KeyCheck::Invalid(_) => println!("not a key of this service, or no longer"),
///     KeyCheck::Unknown(Some(error)) => println!("could not be asked, try again: {error}"),
///     KeyCheck::Unknown(None) => println!("no answer, try again"), // made where nothing came back
/// }
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum KeyCheck {
    /// The key is valid, and this is its account. Whether it has the scope for calls only a list
    /// of calls can tell.
    Valid(Account),
    /// The key is valid, but something else stands in the way.
    Obstructed {
        /// What.
        by: Obstacle,
        /// In the service's words.
        error: ClientError,
    },
    /// The key is missing, malformed, unknown, expired or revoked: the service does not say which.
    Invalid(ClientError),
    /// Nothing is known about the key: somebody else answered, or the service did not say. `None`
    /// is for a host to say that nothing came back at all.
    Unknown(Option<ClientError>),
}

/// What stands in the way of a valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// The plan does not include the API.
    Plan,
    /// The subscription is not active.
    Subscription,
    /// The account is going to be deleted.
    Closing,
    /// The key lacks the scope `account:read`. It may still list calls.
    Scope,
}

impl From<Result<Account, ClientError>> for KeyCheck {
    fn from(answer: Result<Account, ClientError>) -> Self {
        let error = match answer {
            Ok(account) => return Self::Valid(account),
            Err(error) => error,
        };
        let by = match error.remedy() {
            Remedy::UpgradePlan => Obstacle::Plan,
            Remedy::ResumeSubscription => Obstacle::Subscription,
            Remedy::AccountClosed => Obstacle::Closing,
            Remedy::GrantScope => Obstacle::Scope,
            Remedy::ReplaceKey => return Self::Invalid(error),
            _ => return Self::Unknown(Some(error)),
        };
        Self::Obstructed { by, error }
    }
}
