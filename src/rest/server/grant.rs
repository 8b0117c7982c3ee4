//! What an authenticated request may do, whatever it was authenticated by.

use crate::id::{AccountId, CredentialId};
use crate::rest::server::StoredKey;
use crate::rest::{Mode, Scope};

/// One account, in one mode, and what may be done with it.
///
/// [`Received::identify`](super::exchange::Received::identify) makes it of an API key. A host that
/// authenticates otherwise, by OAuth one day, makes it itself: everything after that is the same.
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
/// # Ok::<(), call_assistant::id::IdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    credential_id: CredentialId,
    account_id: AccountId,
    mode: Mode,
    account_read: bool,
    calls_read: bool,
}

impl Grant {
    /// What a credential that has been checked already grants. Scopes that open no endpoint are
    /// passed over.
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

    /// Not public: it is for a key whose state has been checked.
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

    /// Which credential it was. Rates are counted by it.
    #[must_use]
    pub fn credential_id(&self) -> &CredentialId {
        &self.credential_id
    }

    /// The one account it is about.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        &self.account_id
    }

    /// Production or test data.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether it has a scope that opens something.
    #[must_use]
    pub fn allows(&self, scope: &Scope) -> bool {
        match scope {
            Scope::AccountRead => self.account_read,
            Scope::CallsRead => self.calls_read,
            Scope::Other(_) => false,
        }
    }
}
