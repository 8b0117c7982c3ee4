//! Accounts, their keys, and the logins to them.

use std::collections::HashMap;
use std::time::Duration;

use call_assistant::id::AccountId;
use call_assistant::rest::Scope;
use call_assistant::rest::server::{AccountStatus, StoredKey};
use call_assistant::{Timestamp, model};
use deadpool_postgres::GenericClient;

use super::{breaks_reference, listed, one_more};
use crate::db::{At, Database, DbError};
use crate::sql::store::{self as sql, ListedAccount, ListedKey, Owner};
use host::store::scope::By;
use host::store::{
    Account, AccountChange, Done, List, LoginRow, Part, PartRows, Refused, Standing, bounds, place,
};

/// How far `last_used_at` may be behind the last use of a key.
pub(super) const NOTED: Duration = Duration::from_secs(60);

/// Reads a page of accounts, or of those that a search finds, after the last position of the page before.
pub(super) async fn page(
    client: &impl GenericClient,
    search: Option<&str>,
    after: Option<&str>,
    limit: usize,
) -> Done<List<Account>> {
    let (after, most) = (place(after, 0)?, one_more(limit));
    let rows = match search {
        Some(search) => {
            sql::accounts_search(client, after, most, search, &beginnings(search)).await?
        }
        None => sql::accounts_page(client, after, most).await?,
    };
    let shown = |row: ListedAccount| listed("account", &row.id, row.read);
    Ok(PartRows::first(rows, limit, |last| last.position.to_string(), shown))
}

/// Returns the beginnings of words that a name has to have, as a `tsquery`.
fn beginnings(search: &str) -> String {
    let quoted = |word: &str| format!("'{}':*", word.replace('\\', r"\\").replace('\'', "''"));
    let words = search.split(' ').filter(|word| !word.is_empty());
    words.map(quoted).collect::<Vec<_>>().join(" & ")
}

/// Reads one account.
pub(super) async fn one(client: &impl GenericClient, id: &str) -> Done<Account> {
    sql::accounts_one(client, id).await?.ok_or(Refused::NotFound("account"))
}

/// Locks one account, and reads it.
pub(super) async fn locked(change: &impl GenericClient, id: &str) -> Done<Account> {
    sql::accounts_lock(change, id).await?;
    one(change, id).await
}

/// Inserts an account, and returns whether it was new.
pub(super) async fn insert(client: &impl GenericClient, new: &Account) -> Result<bool, DbError> {
    let inserted = sql::accounts_insert(
        client,
        new.id.as_str(),
        new.business_name.as_deref(),
        &new.timezone,
        new.plan.name,
        new.subscription_active,
        new.closing,
    );
    Ok(inserted.await? == 1)
}

pub(super) async fn change(
    client: &impl GenericClient,
    id: &str,
    change: AccountChange,
) -> Done<Account> {
    let plan = change.plan.map(|plan| plan.name);
    let AccountChange { subscription_active, closing, timezone, .. } = change;
    let timezone = timezone.as_deref();
    sql::accounts_change(client, id, plan, subscription_active, closing, timezone).await?;
    one(client, id).await
}

/// Reads a part of the keys of an account.
pub(super) async fn keys(
    client: &impl GenericClient,
    account: &str,
    part: Part<'_>,
) -> Done<List<StoredKey>> {
    let (rows, limit) = match part {
        Part::After(after, limit) => {
            let after = place(after, 0)?;
            (sql::accounts_keys(client, account, after, one_more(limit)).await?, limit)
        }
        Part::Newest(limit) => {
            (sql::accounts_newest_keys(client, account, one_more(limit)).await?, limit)
        }
    };
    if rows.is_empty() {
        one(client, account).await?;
    }
    let shown = |row: ListedKey| listed("key", &row.id, row.read);
    let mut page = PartRows::first(rows, limit, |last| last.position.to_string(), shown);
    if matches!(part, Part::Newest(_)) {
        page.rows.reverse();
        page.next = None;
    }
    Ok(page)
}

/// Reads one key.
pub(super) async fn key(client: &impl GenericClient, id: &str) -> Done<StoredKey> {
    sql::accounts_key(client, id).await?.ok_or(Refused::NotFound("key"))
}

/// Checks that somebody may make one more key. Who makes another one at the same time waits, and counts this one.
pub(super) async fn check_keys(
    change: &impl GenericClient,
    account: &str,
    by: By,
    now: Timestamp,
) -> Done<()> {
    sql::accounts_lock(change, account).await?;
    let since = bounds::KEYS_MADE.since(now);
    let counts = sql::accounts_count_keys(change, account, At(now), At(since)).await?;
    bounds::WORKING_KEYS.check(by, counts.working)?;
    bounds::KEYS_MADE.check(by, counts.made)
}

/// Inserts a key.
pub(super) async fn add_key(client: &impl GenericClient, key: &StoredKey) -> Done<()> {
    let scopes: Vec<&str> = key.scopes.iter().map(Scope::as_str).collect();
    let inserted = sql::accounts_insert_key(
        client,
        key.id.as_str(),
        key.account_id.as_str(),
        key.digest.as_bytes(),
        key.mode.is_live(),
        &key.name,
        &key.hint,
        &scopes,
        At(key.created_at),
        key.last_used_at.map(At),
        key.expires_at.map(At),
        key.revoked_at.map(At),
    );
    match inserted.await {
        Ok(0) => Err(Refused::Conflict("a key with this id or secret already exists".into())),
        Ok(_) => Ok(()),
        Err(error) if breaks_reference(&error) => Err(Refused::NotFound("account")),
        Err(error) => Err(error.into()),
    }
}

/// Revokes a key. Returns when it was revoked before, and the key.
pub(super) async fn revoke(
    client: &impl GenericClient,
    id: &str,
    now: Timestamp,
) -> Done<(Option<Timestamp>, StoredKey)> {
    let revoked = sql::accounts_revoke_key(client, id, At(now)).await?;
    let revoked = revoked.ok_or(Refused::NotFound("key"))?;
    Ok((revoked.revoked_before, revoked.key))
}

/// Returns the account of a key as the public API has it, and how it stands.
pub(super) fn standing_of(owner: Owner) -> Standing {
    let mut account = model::Account::new(owner.account_id.clone(), owner.timezone.as_str());
    account.business_name = owner.business_name;
    let status = AccountStatus {
        account_id: owner.account_id,
        closing: owner.closing,
        subscribed: owner.subscription_active,
        api_in_plan: owner.plan.public_api,
    };
    (account, status)
}

/// Finds logins by the digests of their secrets.
pub(super) async fn logins(
    database: Database,
    digests: Vec<[u8; 32]>,
) -> Done<Vec<Done<Option<LoginRow>>>> {
    let rows = database.read(async |client| {
        let asked: Vec<&[u8]> = digests.iter().map(<[u8; 32]>::as_slice).collect();
        sql::logins_of(client, &asked).await
    });
    let found = rows.await?.into_iter().map(|row| (row.digest, row.read));
    let found: HashMap<Vec<u8>, Result<LoginRow, DbError>> = found.collect();
    let one = |digest: &[u8; 32]| match found.get(digest.as_slice()) {
        Some(Ok(row)) => Ok(Some(row.clone())),
        Some(Err(error)) => Err(Refused::Unavailable(error.to_string())),
        None => Ok(None),
    };
    Ok(digests.iter().map(one).collect())
}

/// Writes a login, and forgets those that expired a day ago: no process's clock is that wrong.
pub(super) async fn write_login(
    client: &impl GenericClient,
    digest: [u8; 32],
    row: &LoginRow,
) -> Done<()> {
    let account = row.account.as_ref().map(AccountId::as_str);
    match sql::logins_write(client, &digest, account, At(row.expires_at), row.ended).await {
        Ok(_) => Ok(()),
        Err(error) if breaks_reference(&error) => Err(Refused::NotFound("account")),
        Err(error) => Err(error.into()),
    }
}

/// Ends every login of an account's owner.
pub(super) async fn end_logins(client: &impl GenericClient, account: &str) -> Done<u64> {
    one(client, account).await?;
    Ok(sql::logins_end(client, account).await?)
}
