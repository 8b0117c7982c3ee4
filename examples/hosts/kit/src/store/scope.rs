//! What a login may see and change, as values that only the check of a login leads to.
//!
//! ```no_run
//! # use host::{http::answer::Error, store::{EndpointRow, Store, scope::Login}};
//! # async fn route(store: impl Store, login: &Login) -> Result<EndpointRow, Error> {
//! let id = login.endpoint(&store, "whep_1").await?;
//! Ok(store.endpoint(id).await?)
//! # }
//! ```
//!
//! A route that forgets the check does not compile:
//!
//! ```compile_fail,E0308
//! # use host::{http::answer::Error, store::{EndpointRow, Store, scope::Login}};
//! # async fn route(store: impl Store, login: &Login) -> Result<EndpointRow, Error> {
//! Ok(store.endpoint("whep_1").await?)
//! # }
//! ```
//!
//! Nor does one that makes the value itself, takes the one of another kind, or gives an owner what is an
//! operator's:
//!
//! ```compile_fail,E0451
//! # use host::{http::answer::Error, store::{EndpointRow, Store, scope::{Allowed, Login}}};
//! # async fn route(store: impl Store, login: &Login) -> Result<EndpointRow, Error> {
//! let id = Allowed { id: "whep_1", by: login.by(), kind: std::marker::PhantomData };
//! Ok(store.endpoint(id).await?)
//! # }
//! ```
//!
//! ```compile_fail,E0308
//! # use host::{http::answer::Error, store::{EndpointRow, Store, scope::Login}};
//! # async fn route(store: impl Store, login: &Login) -> Result<EndpointRow, Error> {
//! let id = login.account("acct_1")?;
//! Ok(store.endpoint(id).await?)
//! # }
//! ```
//!
//! ```compile_fail,E0308
//! # use host::{http::answer::Error, store::{Account, Store, scope::Login}};
//! # async fn route(store: impl Store, login: &Login) -> Result<Vec<Account>, Error> {
//! Ok(store.accounts(login).await?)
//! # }
//! ```

use std::fmt;
use std::marker::PhantomData;

use call_assistant::id::AccountId;
use call_assistant::rest::server::StoredKey;

use crate::store::{
    Account, AlertRow, DeliveryRow, Done, EndpointRow, RecoveryRow, Refused, Store,
};

/// The login of a request, which only its check makes; or of an operator at a terminal.
#[derive(Debug)]
pub struct Login {
    owner: Option<AccountId>,
    by: By,
    only_reads: bool,
}

/// The error when an owner asks for what is the operators'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("only operators may do this, not the owner of an account")]
pub struct NotForOwners;

/// The id of a `T`, as it came from outside, that the login of the request may see and change.
pub struct Allowed<'a, T> {
    id: &'a str,
    by: By,
    kind: PhantomData<fn() -> T>,
}

/// The proof that a login is an operator's.
#[derive(Clone, Copy, Debug)]
pub struct Operator(By);

/// Who does something: a name for the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct By {
    name: &'static str,
    is_person: bool,
}

/// One of them, or all there are, which only an operator may ask for.
#[derive(Clone, Copy, Debug)]
pub enum Among<'a, T> {
    All(Operator),
    One(Allowed<'a, T>),
}

impl By {
    /// The owner of an account, by a link.
    pub(crate) const OWNER: Self = Self { name: "owner", is_person: false };

    /// Whoever uses this machine, where no token is required.
    pub(crate) const THIS_MACHINE: Self = Self { name: "this machine", is_person: false };

    /// Whoever has the one token without a name.
    pub(crate) const OPERATOR: Self = Self { name: "operator", is_person: false };

    /// Creates a person with a name of the command line or of a file: it lives as long as the process.
    ///
    /// # Errors
    /// It is no name of a person, as `By::check` says.
    pub fn person(name: &str) -> Result<Self, &'static str> {
        Self::check(name)?;
        Ok(Self { name: name.to_owned().leak(), is_person: true })
    }

    /// Checks the name of a person who is no account's owner.
    ///
    /// # Errors
    /// It is not 1 to 100 bytes of plain text, or is what the journal calls an account's owner.
    pub(crate) fn check(name: &str) -> Result<(), &'static str> {
        if name.trim().eq_ignore_ascii_case(Self::OWNER.name) {
            return Err(
                "expected another name: in the journal, this name means the owner of an account",
            );
        }
        match name.is_empty() || name.len() > 100 || name.chars().any(char::is_control) {
            true => Err("expected a name: 1 to 100 bytes of plain text"),
            false => Ok(()),
        }
    }

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        self.name
    }

    /// Returns whether it names one person.
    pub(crate) fn is_person(self) -> bool {
        self.is_person
    }
}

impl Operator {
    /// Returns who it is.
    pub fn by(self) -> By {
        self.0
    }
}

impl<'a, T> Allowed<'a, T> {
    /// Returns who was allowed it.
    pub fn by(self) -> By {
        self.by
    }

    /// Returns the id.
    pub fn as_str(self) -> &'a str {
        self.id
    }

    fn new(id: &'a str, login: &Login) -> Self {
        Self { id, by: login.by(), kind: PhantomData }
    }
}

impl<'a, T> Among<'a, T> {
    /// Returns the id, if it is one.
    pub fn one(&self) -> Option<&'a str> {
        match self {
            Self::All(Operator(_)) => None,
            Self::One(id) => Some(id.as_str()),
        }
    }

    /// Returns who was allowed them.
    pub fn by(&self) -> By {
        match self {
            Self::All(operator) => operator.by(),
            Self::One(id) => id.by(),
        }
    }
}

impl<T> Clone for Allowed<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Allowed<'_, T> {}

impl<T> fmt::Debug for Allowed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Allowed").field(&self.id).finish()
    }
}

/// What belongs to another account does not exist for the login of an owner.
impl Login {
    /// Makes the login of an operator at a terminal: whoever can read the database needs no token.
    pub fn at_terminal(by: By) -> Self {
        Self::of_operator(by, false)
    }

    /// Makes the login of an operator whose token was checked.
    pub(crate) fn of_operator(by: By, only_reads: bool) -> Self {
        Self { owner: None, by, only_reads }
    }

    /// Makes the login of an owner whose link was checked.
    pub(crate) fn of_owner(account: AccountId) -> Self {
        Self { owner: Some(account), by: By::OWNER, only_reads: false }
    }

    /// Returns who it is.
    pub fn by(&self) -> By {
        self.by
    }

    /// Returns whether it may look, and change nothing.
    pub(crate) fn only_reads(&self) -> bool {
        self.only_reads
    }

    /// Returns the account that it is bound to; `None` for an operator's.
    pub(crate) fn owner(&self) -> Option<&AccountId> {
        self.owner.as_ref()
    }

    /// Checks that the login is an operator's.
    ///
    /// # Errors
    /// It is an owner's.
    pub fn operator(&self) -> Result<Operator, NotForOwners> {
        match self.owner() {
            None => Ok(Operator(self.by())),
            Some(_) => Err(NotForOwners),
        }
    }

    /// Allows an account.
    ///
    /// # Errors
    /// It is not the login's.
    pub fn account<'a>(&self, id: &'a str) -> Done<Allowed<'a, Account>> {
        self.check("account", |own| own.as_str() == id).map(|()| Allowed::new(id, self))
    }

    /// Allows an endpoint.
    ///
    /// # Errors
    /// It is of another account than the login, or the store does not answer.
    pub async fn endpoint<'a>(
        &self,
        store: &impl Store,
        id: &'a str,
    ) -> Done<Allowed<'a, EndpointRow>> {
        let allowed = Allowed::new(id, self);
        if self.owner().is_some() {
            let found = store.endpoint(allowed).await?;
            self.check("endpoint", |own| *own == found.account_id)?;
        }
        Ok(allowed)
    }

    /// Allows a delivery.
    ///
    /// # Errors
    /// It is of another account than the login, or the store does not answer.
    pub async fn delivery<'a>(
        &self,
        store: &impl Store,
        id: &'a str,
    ) -> Done<Allowed<'a, DeliveryRow>> {
        let allowed = Allowed::new(id, self);
        if self.owner().is_some() {
            let found = store.delivery(allowed).await?;
            self.check("delivery", |own| *own == found.account_id)?;
        }
        Ok(allowed)
    }

    /// Allows a recovery.
    ///
    /// # Errors
    /// Its endpoint is of another account than the login, or the store does not answer.
    pub async fn recovery<'a>(
        &self,
        store: &impl Store,
        id: &'a str,
    ) -> Done<Allowed<'a, RecoveryRow>> {
        let allowed = Allowed::new(id, self);
        if self.owner().is_some() {
            let found = store.recovery(allowed).await?;
            let endpoint = store.endpoint(Allowed::new(found.endpoint_id.as_str(), self)).await?;
            self.check("recovery", |own| *own == endpoint.account_id)?;
        }
        Ok(allowed)
    }

    /// Allows an API key.
    ///
    /// # Errors
    /// It is of another account than the login, or the store does not answer.
    pub async fn key<'a>(&self, store: &impl Store, id: &'a str) -> Done<Allowed<'a, StoredKey>> {
        let allowed = Allowed::new(id, self);
        if self.owner().is_some() {
            let found = store.key(allowed).await?;
            self.check("key", |own| *own == found.account_id)?;
        }
        Ok(allowed)
    }

    /// Allows an alert.
    ///
    /// # Errors
    /// It is of another account than the login, or the store does not answer.
    pub async fn alert<'a>(&self, store: &impl Store, id: &'a str) -> Done<Allowed<'a, AlertRow>> {
        let allowed = Allowed::new(id, self);
        if self.owner().is_some() {
            let found = store.alert(allowed).await?;
            self.check("alert", |own| *own == found.account_id)?;
        }
        Ok(allowed)
    }

    /// Checks what only an owner's login has to fulfil.
    fn check(&self, what: &'static str, is_own: impl FnOnce(&AccountId) -> bool) -> Done<()> {
        match self.owner().is_none_or(is_own) {
            true => Ok(()),
            false => Err(Refused::NotFound(what)),
        }
    }
}
