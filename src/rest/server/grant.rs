//! What an authenticated request may do.

use crate::id::{AccountId, CredentialId};
use crate::rest::server::StoredKey;
use crate::rest::{Mode, Scope};

/// The rights of a credential: scopes on one account, in one mode.
///
/// ```
/// use call_assistant::rest::{Mode, Scope};
/// use call_assistant::id::{AccountId, CredentialId};
/// use call_assistant::rest::server::Grant;
///
/// let (token, account) = (CredentialId::parse("token_9")?, AccountId::parse("acct_1")?);
/// let grant = Grant::new(token, account, Mode::Live, [Scope::CallsRead, Scope::from("calls:write")]);
/// assert!(grant.allows(&Scope::CallsRead));
/// assert!(!grant.allows(&Scope::from("calls:write")), "reserved scopes grant nothing");
/// # Ok::<(), call_assistant::TextError>(())
/// ```
///
/// [`Received::identify`](super::Received::identify) makes it from an API key. A host that
/// authenticates in another way, such as OAuth, makes it and calls
/// [`Received::identify_decided`](super::Received::identify_decided).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    credential_id: CredentialId,
    account_id: AccountId,
    mode: Mode,
    account_read: bool,
    calls_read: bool,
}

impl Grant {
    /// Creates the grant of a credential that has been checked. Reserved scopes are ignored.
    #[must_use]
    pub fn new(
        credential_id: CredentialId,
        account_id: AccountId,
        mode: Mode,
        scopes: impl IntoIterator<Item = Scope>,
    ) -> Self {
        let none = Self { credential_id, account_id, mode, account_read: false, calls_read: false };
        scopes.into_iter().fold(none, |grant, scope| grant.with(&scope))
    }

    /// Creates the grant of a key whose state was checked.
    pub(super) fn of_key(key: &StoredKey) -> Self {
        let none = Self::new(key.id.clone(), key.account_id.clone(), key.mode, []);
        key.scopes.iter().fold(none, Self::with)
    }

    fn with(mut self, scope: &Scope) -> Self {
        match scope {
            Scope::AccountRead => self.account_read = true,
            Scope::CallsRead => self.calls_read = true,
            Scope::Other(_) => {}
        }
        self
    }

    /// Returns the credential. Rates are counted by it.
    #[must_use]
    pub fn credential_id(&self) -> &CredentialId {
        &self.credential_id
    }

    /// Returns the account.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        &self.account_id
    }

    /// Returns whether the grant is for production or test data.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns whether it has a scope. Reserved scopes are never granted.
    #[must_use]
    pub fn allows(&self, scope: &Scope) -> bool {
        match scope {
            Scope::AccountRead => self.account_read,
            Scope::CallsRead => self.calls_read,
            Scope::Other(_) => false,
        }
    }
}
