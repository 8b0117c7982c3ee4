//! Accounts, the logins to them, and what was done to them.

use std::str::FromStr;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId};
use call_assistant::model::Call;
use call_assistant::rest::ApiKey;
use call_assistant::rest::server::StoredKey;
use serde::Serialize;
use serde_json::Value;

use super::plan::Plan;
use super::scope::Allowed;
use super::{Done, Listed, NewEndpoint, Refused};
use crate::input::Bad;

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

/// A page of a list of an account: so many rows at most, behind the `next` of another page, or the first.
#[derive(Clone, Copy, Debug)]
pub struct PageOf<'a> {
    pub account: Allowed<'a, Account>,
    pub after: Option<&'a str>,
    pub limit: usize,
}

/// Where a list is read from.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// Behind a place, or from the beginning: oldest first.
    After(Option<&'a str>),
    /// Before a place, or from the end: newest first.
    Before(Option<&'a str>),
}

/// A part of a list, of rows that may be unreadable.
pub type List<T> = PartRows<Listed<T>>;

/// A part of a list.
#[derive(Clone, Debug)]
pub struct PartRows<T> {
    pub rows: Vec<T>,
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

impl<T> PartRows<T> {
    /// Returns the first of these rows as a page: one more row tells whether there are others. `place` returns where the
    /// page behind a row begins.
    pub fn first<R>(
        mut rows: Vec<R>,
        limit: usize,
        place: impl Fn(&R) -> String,
        show: impl FnMut(R) -> T,
    ) -> Self {
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(place);
        Self { rows: rows.into_iter().map(show).collect(), next, more }
    }
}

const NO_PLACE: &str = "not the `next` of a page";

/// Reads where a page begins.
///
/// # Errors
/// It is no [`PartRows::next`].
pub fn place<P: FromStr>(after: Option<&str>, start: P) -> Done<P> {
    let wrong = |_| Refused::Bad(Bad::new("after", NO_PLACE));
    after.map_or(Ok(start), |after| after.parse().map_err(wrong))
}

/// Returns the place of a call in a list, as a page of calls begins behind it.
pub fn place_of_call(started_at: Timestamp, id: &str) -> String {
    format!("{started_at}_{id}")
}

/// Reads where a page of calls begins: [`place_of_call`].
///
/// # Errors
/// It is no place of a call.
pub fn call_place(after: Option<&str>) -> Done<Option<(Timestamp, CallId)>> {
    let Some((at, id)) = after.map(|after| after.split_once('_').unwrap_or((after, ""))) else {
        return Ok(None);
    };
    let at = place(Some(at), Timestamp::MAX)?;
    let wrong = |_| Refused::Bad(Bad::new("after", NO_PLACE));
    Ok(Some((at, CallId::parse(id).map_err(wrong)?)))
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
    pub before: Option<Value>,
    pub after: Option<Value>,
}
