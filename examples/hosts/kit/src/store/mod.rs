//! The interface of a host's store, implemented by both hosts.
//!
//! [`ApiStore`] is what the public API looks up, [`Store`] what the dashboard reads and changes.
//! Each method is one operation with plain values, and one transaction of the store: when its future
//! is ready, what it changed is stored. `examples/hosts/memory` answers at once, under a lock;
//! `examples/hosts/postgres` awaits its database. An implementation writes `async fn`:
//!
//! ```text
//! #[derive(Clone)]
//! struct Database(Pool);
//!
//! impl Store for Database {
//!     async fn account(&self, id: Allowed<'_, Account>) -> Done<Account> {
//!         let row = self.0.get().await?.query_opt(ACCOUNT, &[&id.as_str()]).await?;
//!         account_of(&row.ok_or(Refused::NotFound("account"))?)
//!     }
//!     // ...
//! }
//! ```
//!
//! # What every implementation promises
//! - **The plan is checked by the store**, in the transaction that needs it: `add_endpoint`,
//!   `enable`, `redeliver`, `send_now` and `recover` need webhooks, and events of an account without
//!   them are stored for nobody. What is pending is still sent after a downgrade.
//! - **The store tells its sender** what it accepted, made due or changed. Nobody else does.
//! - **The store has its own clock.** It takes the time of a change where it makes the change.
//!   [`Store::now`] is for what the dashboard makes and shows.
//! - **Ids came from outside, and the login may use them**: only its check makes an [`Allowed`]. One that
//!   nothing has is [`Refused::NotFound`], with the word for the thing: `account`, `key`, `endpoint`, `delivery`,
//!   `recovery`.
//! - **A store that fails says [`Refused::Unavailable`]**, at once: the caller is told to come
//!   again, and the reason goes to the log.
//! - Lists are complete unless the method says otherwise, and in the order it says. A row that cannot be
//!   read is in its place with its id, and why is in the log.
//!

mod account;
pub mod bounds;
mod delivery;
mod endpoint;
mod fleet;
pub mod levers;
mod metrics;
pub mod plan;
mod recovery;
pub mod scope;
pub mod together;

use std::future::Future;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId, DeliveryId, EndpointId};
use call_assistant::model::{self, Call};
use call_assistant::rest::server::{
    AccountStatus, Admitted, CallQuery, CallRow, CallsQuery, Identified, Received, Rejection,
    StoredKey,
};
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{PlanError, RecoveryFilter};

use crate::flags::expected;
use crate::input::Bad;
use crate::store::levers::{Cancelled, LeverOf, LeverRow, Levers};
use crate::store::scope::{Allowed, Among, By, Operator};
use crate::trace::TraceParent;

pub use account::{
    Account, AccountChange, JournalRow, List, LoginRow, NewAccount, PageOf, Part, PartRows, Place,
    call_place, place, place_of_call,
};
pub use delivery::{AttemptRow, DeliveryFilter, DeliveryPage, DeliveryRow, LISTED_BODY};
pub use endpoint::{
    Acknowledged, AlertPage, AlertRow, Day, Enabled, EndpointEdit, EndpointRow, Hour, LastHour,
    NewEndpoint, NewSecret,
};
pub use fleet::{Fleet, FleetHour, MOST_TROUBLED, MOST_WAITING, TroubledRow};
pub use metrics::{Family, LoadRow, Metrics, Writes};
pub use recovery::{MOST_COUNTED, MOST_LISTED, Missed, RecoveryPage, RecoveryRow, missed_so_far};

/// A row of a list, or the id of one that cannot be read.
pub type Listed<T> = Result<T, Unreadable>;

/// The id of a row that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

/// The reason why an operation is refused. Its text is for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It does not exist: the word for it.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// It exists already, or its state does not allow the operation: the reason.
    #[error("{0}")]
    Conflict(String),
    /// The plan does not include it.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// What is asked for is wrong.
    #[error(transparent)]
    Bad(Bad),
    /// This process must not do it, and another may: the reason, and what to do.
    #[error("{0}")]
    Unfit(String),
    /// The store has failed, and the same may succeed later. The reason is for the log alone.
    #[error("the store does not answer, or has failed; try again")]
    Unavailable(String),
    /// The store refuses until somebody has mended it: what it lacks, and the reason for the log alone.
    #[error("{0}")]
    Broken(&'static str, String),
}

/// A response without what was asked for, and why the host has failed if it has.
#[derive(Debug)]
pub struct Rejected {
    /// The response.
    pub rejection: Rejection,
    /// The reason for the log alone, such as those of [`Refused::Unavailable`] and [`Refused::Broken`].
    pub why: Option<String>,
}

impl Refused {
    /// Adds the response. The reason stays for the log.
    pub fn rejecting(self, rejection: Rejection) -> Rejected {
        let why = match self {
            Self::Unavailable(why) | Self::Broken(_, why) => Some(why),
            _ => None,
        };
        Rejected { rejection, why }
    }
}

impl From<Rejection> for Rejected {
    fn from(rejection: Rejection) -> Self {
        Self { rejection, why: None }
    }
}

/// The most endpoints of an account that are not deleted: 100, unless the command line says otherwise.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct EndpointLimit {
    /// The maximum number of endpoints per account.
    #[arg(long = "max-endpoints", value_name = "N", default_value_t = Self::default().most)]
    #[arg(value_parser = expected::<u32>("a number of endpoints"))]
    most: u32,
}

impl Default for EndpointLimit {
    fn default() -> Self {
        Self { most: 100 }
    }
}

impl EndpointLimit {
    /// Returns the number.
    pub fn get(self) -> u32 {
        self.most
    }

    /// Checks that an account with so many endpoints may have one more.
    ///
    /// # Errors
    /// The limit is reached.
    pub fn check(self, endpoints: u64) -> Done<()> {
        let Self { most } = self;
        match endpoints < u64::from(most) {
            true => Ok(()),
            false => Err(Refused::Conflict(format!(
                "the account has {endpoints} endpoints, and the limit is {most}"
            ))),
        }
    }
}

/// Returns the refusal of a store without levers.
fn no_levers() -> Refused {
    Refused::Conflict("this host has no levers: pause the endpoints instead".to_owned())
}

/// The result of one operation.
pub type Done<T> = Result<T, Refused>;

/// The future of one operation.
pub trait Doing<T>: Future<Output = Done<T>> + Send {}

impl<T, F: Future<Output = Done<T>> + Send> Doing<T> for F {}

/// The look-ups of the public API.
///
/// The exchange's states go in and come out, so that a store may do each step in the way that is
/// exact for it: the in-memory one notes a key's use and counts its window under a lock, a database
/// in one statement that several processes share. Where a look-up fails, the answer is the state's
/// `internal_error()` with the reason for the log ([`Refused::rejecting`]).
pub trait ApiStore: Clone + Send + Sync + 'static {
    /// Finds the key of a request ([`Received::digest`]), notes its use, and identifies the request. The account of the
    /// key is found in the same look-up.
    fn identify(
        &self,
        received: Received,
    ) -> impl Future<Output = Result<(Identified, Option<Standing>), Rejected>> + Send;

    /// Counts the request in the window of its credential, exactly.
    fn admit(
        &self,
        identified: Identified,
    ) -> impl Future<Output = Result<Admitted, Rejected>> + Send;

    /// Returns the rows of a page. However many calls the account has, and whatever the bounds leave out of them, a
    /// bounded number is read.
    fn page(&self, query: &CallsQuery) -> impl Doing<CallPage>;

    /// Returns the row of a call.
    fn call(&self, query: &CallQuery) -> impl Doing<Option<CallRow>>;
}

/// An account as the public API shows it, and its status.
pub type Standing = (model::Account, AccountStatus);

/// Rows of a page of calls.
#[derive(Debug, Default)]
pub struct CallPage {
    pub rows: Vec<CallRow>,
    /// The place to which the store has looked, where more than it reads for a page is left.
    pub walked_to: Option<(Timestamp, CallId)>,
}

/// The operations of the dashboard.
pub trait Store: Clone + Send + Sync + 'static {
    /// Returns the time, as precise as this store keeps it.
    fn now(&self) -> Timestamp;

    /// Returns a number that changes with anything that a page shows. `None` if it is not known: then
    /// each poll reads everything.
    fn version(&self) -> Option<u64> {
        None
    }

    // ---- Accounts and keys

    /// Adds initial accounts. Existing accounts do not change.
    fn load(&self, accounts: Vec<NewAccount>) -> impl Doing<()>;

    /// Returns accounts, in the order in which they were added: so many at most, after those of the page
    /// before with this [`PartRows::next`]; all of them, or those whose id begins so, or whose name has words that begin
    /// like all words of the search. Spaces separate words. Case does not count in a name; beyond ASCII, as the store's
    /// locale has it.
    fn accounts(
        &self,
        by: Operator,
        search: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> impl Doing<List<Account>>;

    fn account(&self, id: Allowed<'_, Account>) -> impl Doing<Account>;

    /// Adds an account. A conflict if its id is taken, or was erased.
    fn add_account(&self, by: Operator, new: Account) -> impl Doing<Account>;

    fn change_account(&self, by: Operator, id: &str, change: AccountChange) -> impl Doing<Account>;

    /// Tells whether there is a timezone of this name. A store without a list of them knows all.
    fn knows_timezone(&self, _: Operator, _name: &str) -> impl Doing<bool> {
        std::future::ready(Ok(true))
    }

    /// Returns a part of the keys of an account, oldest first.
    fn keys(&self, account: Allowed<'_, Account>, part: Part<'_>) -> impl Doing<List<StoredKey>>;

    /// Returns one key.
    fn key(&self, id: Allowed<'_, StoredKey>) -> impl Doing<StoredKey>;

    /// Adds a key to its account. A conflict if another key has its id or secret.
    fn add_key(&self, account: Allowed<'_, Account>, key: StoredKey) -> impl Doing<()>;

    /// Revokes a key. The time of an earlier revocation stays.
    fn revoke_key(&self, id: Allowed<'_, StoredKey>) -> impl Doing<StoredKey>;

    // ---- Calls and events

    /// Returns a page of the live calls of an account, newest first.
    fn calls(&self, page: PageOf<'_>) -> impl Doing<List<Call>>;

    /// Records a live call and accepts the event that reports it, in one transaction. Both are composed
    /// in it, as of its start, which is their `created_at`. Returns the event's deliveries, in the
    /// order of the account's endpoints. A conflict if a call of this id is there, live or test; then
    /// nothing is stored. `trace` is the request's: a store whose log has attempts stores it with the event.
    fn record_call<E: From<Refused> + Send>(
        &self,
        by: Operator,
        account: &AccountId,
        trace: Option<&TraceParent>,
        compose: impl FnOnce(Timestamp) -> Result<(Call, Option<EventBody>), E> + Send,
    ) -> impl Future<Output = Result<Vec<DeliveryId>, E>> + Send;

    /// Accepts an event for each endpoint of its account, deleted ones left out, or for one of them.
    /// None if the plan lacks webhooks. The one endpoint is refused unless it is among those: another
    /// account's never gets the event. It is composed as in [`record_call`](Self::record_call).
    fn accept<E: From<Refused> + Send>(
        &self,
        to: Among<'_, EndpointRow>,
        trace: Option<&TraceParent>,
        compose: impl FnOnce(Timestamp) -> Result<EventBody, E> + Send,
    ) -> impl Future<Output = Result<Vec<DeliveryId>, E>> + Send;

    // ---- Endpoints

    /// Returns a page of the endpoints of an account, oldest first, deleted ones left out.
    fn endpoints(&self, page: PageOf<'_>) -> impl Doing<List<EndpointRow>>;

    /// Returns one endpoint, also if it is deleted.
    fn endpoint(&self, id: Allowed<'_, EndpointRow>) -> impl Doing<EndpointRow>;

    /// Registers an endpoint. A conflict if its id is taken, or its account has as many as the
    /// [limit](EndpointLimit) allows, also when several are added at once.
    fn add_endpoint(
        &self,
        account: Allowed<'_, Account>,
        new: NewEndpoint,
    ) -> impl Doing<EndpointRow>;

    /// Describes an endpoint, or gives it another URL, and with that a new life: what is pending goes
    /// there, its count is zero, and answers of the old URL leave it as it is. A conflict if it is deleted.
    fn edit_endpoint(
        &self,
        id: Allowed<'_, EndpointRow>,
        edit: EndpointEdit,
    ) -> impl Doing<EndpointRow>;

    /// Disables an endpoint until it is enabled. A conflict if it is disabled.
    fn pause(&self, id: Allowed<'_, EndpointRow>) -> impl Doing<EndpointRow>;

    /// Makes an endpoint active; one that is active stays as it is, and has missed nothing. A
    /// conflict if it is deleted. Once it is stored, that is the answer, whatever comes of the list.
    fn enable(&self, id: Allowed<'_, EndpointRow>) -> impl Doing<Enabled>;

    /// Disables an endpoint for good. Its deliveries are kept for thirty days.
    fn delete_endpoint(&self, id: Allowed<'_, EndpointRow>) -> impl Doing<EndpointRow>;

    /// Replaces the signing secret. A conflict if more secrets than a signer takes would sign, or
    /// if the endpoint is deleted.
    fn rotate_secret(
        &self,
        id: Allowed<'_, EndpointRow>,
        new: NewSecret,
    ) -> impl Doing<EndpointRow>;

    /// Returns how each endpoint of an account has answered in the last hour. One that is left out is shown
    /// without.
    fn last_hour(&self, account: Allowed<'_, Account>) -> impl Doing<Vec<(EndpointId, LastHour)>>;

    /// Returns how the events of the day that begins at `from` stand at each endpoint of an account, the latest
    /// [`Day::most`] of each.
    fn day(
        &self,
        account: Allowed<'_, Account>,
        from: Timestamp,
    ) -> impl Doing<Vec<(EndpointId, Day)>>;

    // ---- Deliveries

    /// Returns a page of an account's deliveries, newest first. An endpoint of another account is not
    /// found; an `after` that this store did not write is wrong. A page may have fewer rows than its limit, or
    /// none, and a next one: [`DeliveryPage::looked_to`].
    fn deliveries(
        &self,
        account: Allowed<'_, Account>,
        filter: &DeliveryFilter,
    ) -> impl Doing<DeliveryPage>;

    fn delivery(&self, id: Allowed<'_, DeliveryRow>) -> impl Doing<DeliveryRow>;

    /// Makes one manual attempt due, or says by [`Refused::Conflict`] why not.
    fn redeliver(&self, id: Allowed<'_, DeliveryRow>) -> impl Doing<DeliveryRow>;

    /// Makes the next attempt of a waiting delivery due now. A conflict if it does not wait.
    fn send_now(&self, id: Allowed<'_, DeliveryRow>) -> impl Doing<DeliveryRow>;

    // ---- Recovery

    /// Counts what a recovery would redeliver, up to a bound: the dry run.
    fn count_missed(
        &self,
        endpoint: Allowed<'_, EndpointRow>,
        missed: &RecoveryFilter,
    ) -> impl Doing<Missed>;

    /// Starts a recovery by a person in the dashboard. A conflict if the endpoint is disabled, or
    /// one is running. However much was missed, the answer comes at once: what is not counted by then
    /// is counted while it runs.
    fn recover(
        &self,
        endpoint: Allowed<'_, EndpointRow>,
        missed: RecoveryFilter,
    ) -> impl Doing<RecoveryRow>;

    /// Starts a recovery of each endpoint of an account, or of all accounts, that is active and has
    /// missed something: those of one page, after the page that said so.
    fn recover_all(
        &self,
        of: Among<'_, Account>,
        missed: RecoveryFilter,
        after: Option<&str>,
    ) -> impl Doing<RecoveryPage>;

    /// Returns a page of the recoveries of an account: those that run, then those that have ended, newest first.
    fn recoveries(&self, page: PageOf<'_>) -> impl Doing<List<RecoveryRow>>;

    fn recovery(&self, id: Allowed<'_, RecoveryRow>) -> impl Doing<RecoveryRow>;

    /// Has a recovery rest, or go on. What is under way stays so. A conflict if it has ended.
    fn pause_recovery(&self, id: Allowed<'_, RecoveryRow>, paused: bool)
    -> impl Doing<RecoveryRow>;

    /// Ends a recovery. What is under way stays so. One that has ended stays as it is.
    fn cancel_recovery(&self, id: Allowed<'_, RecoveryRow>) -> impl Doing<RecoveryRow>;

    // ---- Levers: a store that leaves these out has none

    /// Returns what is set, and the senders that live.
    fn levers(&self, _: Operator) -> impl Doing<Levers> {
        std::future::ready(Ok(Levers::default()))
    }

    /// Returns what is set of an account, of its endpoints, or of everything.
    fn levers_of(&self, _: Allowed<'_, Account>) -> impl Doing<Vec<LeverRow>> {
        std::future::ready(Ok(Vec::new()))
    }

    /// Sets how many attempts begin in a second at most, in each sender: 0 for none. Every sender knows it within
    /// seconds. A conflict if there is a lever of the same already, unless it is the one whose id is `instead_of`,
    /// which is replaced, or allows as much, which stays.
    fn set_lever(
        &self,
        _: Operator,
        _of: LeverOf,
        _per_second: u32,
        _instead_of: Option<&str>,
    ) -> impl Doing<LeverRow> {
        std::future::ready(Err(no_levers()))
    }

    /// Removes a lever. What has waited is sent. A conflict if it is not set.
    fn undo_lever(&self, _: Operator, _id: &str) -> impl Doing<LeverRow> {
        std::future::ready(Err(no_levers()))
    }

    /// Ends pending deliveries of an account with events of a type, in steps: this one goes on where the
    /// previous one ended. They are parked, and a recovery of the type sends them.
    fn cancel_pending(
        &self,
        _: Operator,
        _account: Allowed<'_, Account>,
        _event_type: &str,
        _after: Option<&str>,
    ) -> impl Doing<Cancelled> {
        std::future::ready(Err(no_levers()))
    }

    // ---- Logins of the dashboard

    /// Finds a stored login by the digest of its secret.
    fn login(&self, digest: [u8; 32]) -> impl Doing<Option<LoginRow>>;

    /// Stores a login for every process. One that has ended stays so.
    fn write_login(&self, by: By, digest: [u8; 32], row: LoginRow) -> impl Doing<()>;

    /// Ends every login of an account's owner, and returns how many there were.
    fn end_logins(&self, by: Operator, account: &str) -> impl Doing<u64>;

    // ---- Operation

    /// Returns a page of what an account's owner should be told, newest first.
    fn alerts(&self, page: PageOf<'_>) -> impl Doing<PartRows<AlertRow>>;

    /// Returns one alert.
    fn alert(&self, id: Allowed<'_, AlertRow>) -> impl Doing<AlertRow>;

    /// Returns so many alerts of all accounts at most: those that were stored after a page with this
    /// [`AlertPage::next`], or those before the alert with this id. After a page, none is left out, however late its
    /// transaction commits. A conflict if this store has not come as far as that page, or if no alert has such an id.
    fn all_alerts(&self, by: Operator, of: Place<'_>, limit: usize) -> impl Doing<AlertPage>;

    /// Returns how all accounts stand.
    fn fleet(&self, by: Operator) -> impl Doing<Fleet>;

    /// Notes that an operator with this name has taken note of an alert, or its owner where there is none. The first
    /// note of each stays, and says nothing of the other's.
    fn acknowledge(&self, id: Allowed<'_, AlertRow>, by: Option<&str>) -> impl Doing<AlertRow>;

    /// Returns what operators and owners have done: so much at most, after or before the row with this
    /// [`JournalRow::position`]. After a row, none is left out, however late its transaction commits.
    fn journal(&self, _: Operator, _: Place<'_>, _limit: usize) -> impl Doing<Vec<JournalRow>> {
        let why = "this host keeps no journal";
        std::future::ready(Err(Refused::Conflict(why.to_owned())))
    }

    /// Tells whether requests can be answered now, and how writes are taken. [`Refused::Unavailable`] says why
    /// not, in words for whoever asks.
    fn ready(&self) -> impl Doing<Writes>;

    /// Returns what this process has counted, and what the store holds if it answers.
    fn metrics(&self) -> impl Future<Output = Metrics> + Send;
}
