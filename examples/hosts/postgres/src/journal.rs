//! Who did what: written in the transaction of what was done, and read in the order of commits.

use call_assistant::id::AccountId;
use deadpool_postgres::{GenericClient, Transaction};
use serde_json::Value;

use crate::db::{Database, DbError};
use crate::sql::store as sql;
use host::input::Bad;
use host::log;
use host::store::scope::{Allowed, By};
use host::store::{Done, JournalRow, Place, Refused};

/// Something that is done.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    by: By,
    /// A word that programs branch on.
    action: &'static str,
    account: Option<String>,
    /// The id of what it is done to.
    target: String,
    /// What is changed, as it was and as it becomes. It has no secret and no person's data.
    before: Value,
    after: Value,
    is_logged: bool,
}

impl Deed {
    /// Creates a deed that changes nothing which can be shown.
    pub(crate) fn new(by: By, action: &'static str, account: Option<&str>, target: &str) -> Self {
        let (account, target) = (account.map(str::to_owned), target.to_owned());
        let (before, after) = (Value::Null, Value::Null);
        Self { by, action, account, target, before, after, is_logged: false }
    }

    /// Creates a deed of who was allowed the target.
    pub(crate) fn to<T>(target: Allowed<'_, T>, action: &'static str, account: &AccountId) -> Self {
        Self::new(target.by(), action, Some(account.as_str()), target.as_str())
    }

    /// Adds what it changes.
    pub(crate) fn changing(self, before: Value, after: Value) -> Self {
        Self { before, after, ..self }
    }

    /// Has the log tell of it as well.
    pub(crate) fn logged(self) -> Self {
        Self { is_logged: true, ..self }
    }

    /// Writes it, unless all is as it was.
    pub(crate) async fn note(&self, change: &impl GenericClient) -> Result<(), DbError> {
        let Self { by, action, account, target, before, after, .. } = self;
        if before == after && !before.is_null() {
            return Ok(());
        }
        let (account, before, after) = (account.as_deref(), text(before), text(after));
        sql::journal_insert(change, by.as_str(), action, account, target, before, after).await?;
        Ok(())
    }
}

/// Changes something in one transaction, and notes the deed in it: none where nothing has changed. The log tells of it
/// once it is committed.
///
/// # Errors
/// The step's, or that there was no answer in time.
pub(crate) async fn act<T, D: Into<Option<Deed>>>(
    database: &Database,
    step: impl AsyncFnOnce(&Transaction<'_>) -> Done<(T, D)>,
) -> Done<T> {
    let act = async |change: &Transaction<'_>| {
        let (done, deed) = step(change).await?;
        let deed = deed.into();
        if let Some(deed) = &deed {
            deed.note(change).await?;
        }
        Ok::<_, Refused>((done, deed))
    };
    let (done, deed) = database.change(act).await?;
    if let Some(Deed { by, action, target, after, .. }) = deed.filter(|deed| deed.is_logged) {
        let (by, on, after) = (by.as_str(), target, text(&after));
        log::info!(by, action, on, after, "an operator acts");
    }
    Ok(done)
}

fn text(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| value.to_string())
}

/// Reads what was done: after a position, oldest first, or before it, newest first.
pub(crate) async fn read(
    client: &impl GenericClient,
    of: Place<'_>,
    limit: usize,
) -> Done<Vec<JournalRow>> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    match of {
        Place::After(after) => {
            let (writer, id) = after.map_or(Ok((0, 0)), position_of)?;
            let writer = writer.to_string();
            if after.is_some() && !sql::journal_reached(client, &writer, id).await? {
                let why = "after: this journal has no such row: the database was restored, or is another; begin again \
                           without it";
                return Err(Refused::Conflict(why.into()));
            }
            Ok(sql::journal_after(client, &writer, id, most).await?)
        }
        Place::Before(before) => {
            let (writer, id) = before.map_or(Ok((u64::MAX, i64::MAX)), position_of)?;
            Ok(sql::journal_before(client, &writer.to_string(), id, most).await?)
        }
    }
}

fn position_of(text: &str) -> Done<(u64, i64)> {
    let parts = text.split_once('-');
    let read = parts.and_then(|(writer, id)| Some((writer.parse().ok()?, id.parse().ok()?)));
    read.ok_or_else(|| Refused::Bad(Bad::new("after", "not a position of the journal")))
}
