//! Accounts and their keys.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CredentialId};
use call_assistant::model;
use call_assistant::rest::server::{AccountStatus, KeyDigest, StoredKey};
use call_assistant::rest::{Mode, Scope};
use deadpool_postgres::GenericClient;
use tokio_postgres::Row;

use super::{breaks_reference, listed, unreadable};
use crate::db::statements as sql;
use crate::db::{At, DbError, Fields as _, execute, plan_of, query, query_opt};
use host::store::{Account, AccountChange, AccountPage, Listed};
use host::store::{Done, Refused};

/// How far `last_used_at` may be behind the last use of a key.
pub(super) const NOTED: Duration = Duration::from_secs(60);

/// Reads a page of accounts, or of those whose id or name begins so, after the last position of the page before.
pub(super) async fn page(
    client: &impl GenericClient,
    begins: Option<&str>,
    after: Option<&str>,
    limit: usize,
) -> Done<AccountPage> {
    let after: i32 = match after {
        Some(text) => {
            text.parse().map_err(|_| Refused::Conflict("after: not a page of accounts".into()))?
        }
        None => 0,
    };
    let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let rows = match begins {
        Some(begins) => query(client, sql::ACCOUNTS_SEARCH, &[&after, &most, &begins]).await?,
        None => query(client, sql::ACCOUNTS_PAGE, &[&after, &most]).await?,
    };
    let has_more = rows.len() > limit;
    let last = rows.get(..limit).and_then(<[Row]>::last).filter(|_| has_more);
    let next = last.map(|row| row.field::<i32>("position")).transpose()?;
    let read = |row: &Row| Ok(listed("account", row.field("id")?, account_of(row)));
    let rows = rows.iter().take(limit).map(read).collect::<Done<_>>()?;
    Ok(AccountPage { rows, next: next.map(|position| position.to_string()) })
}

/// Reads one account.
pub(super) async fn one(client: &impl GenericClient, id: &str) -> Done<Account> {
    let row = query_opt(client, sql::ACCOUNTS_ONE, &[&id]).await?;
    account_of(&row.ok_or(Refused::NotFound("account"))?)
}

/// Locks one account, and reads it.
pub(super) async fn locked(change: &impl GenericClient, id: &str) -> Done<Account> {
    execute(change, sql::ACCOUNTS_LOCK, &[&id]).await?;
    one(change, id).await
}

/// Inserts an account, and returns whether it was new.
pub(super) async fn insert(client: &impl GenericClient, new: &Account) -> Result<bool, DbError> {
    let inserted = execute(
        client,
        sql::ACCOUNTS_INSERT,
        &[
            &new.id.as_str(),
            &new.business_name,
            &new.timezone,
            &new.plan.name,
            &new.subscription_active,
            &new.closing,
        ],
    )
    .await;
    Ok(inserted? == 1)
}

pub(super) async fn change(
    client: &impl GenericClient,
    id: &str,
    change: AccountChange,
) -> Done<Account> {
    let plan = change.plan.map(|plan| plan.name);
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&id, &plan, &change.subscription_active, &change.closing, &change.timezone];
    execute(client, sql::ACCOUNTS_CHANGE, &parameters).await?;
    one(client, id).await
}

/// Tells whether the server knows a timezone of this name.
pub(super) async fn knows_timezone(client: &impl GenericClient, name: &str) -> Done<bool> {
    let row = query_opt(client, sql::ACCOUNTS_TIMEZONE, &[&name]).await?;
    Ok(row.map_or(Ok(false), |row| row.field("is_known"))?)
}

/// Reads the keys of an account, oldest first.
pub(super) async fn keys(
    client: &impl GenericClient,
    account: &str,
) -> Done<Vec<Listed<StoredKey>>> {
    let rows = query(client, sql::ACCOUNTS_KEYS, &[&account]).await?;
    if rows.is_empty() {
        one(client, account).await?;
    }
    rows.iter().map(|row| Ok(listed("key", row.field("id")?, key_of(row)))).collect()
}

pub(super) async fn add_key(client: &impl GenericClient, key: &StoredKey) -> Done<()> {
    let scopes: Vec<&str> = key.scopes.iter().map(Scope::as_str).collect();
    let floor = |at: Option<Timestamp>| at.map(At);
    let inserted = execute(
        client,
        sql::ACCOUNTS_INSERT_KEY,
        &[
            &key.id.as_str(),
            &key.account_id.as_str(),
            &key.digest.as_bytes().as_slice(),
            &key.mode.is_live(),
            &key.name,
            &key.hint,
            &scopes,
            &At(key.created_at),
            &floor(key.last_used_at),
            &floor(key.expires_at),
            &floor(key.revoked_at),
        ],
    )
    .await;
    match inserted {
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
    let row = query_opt(client, sql::ACCOUNTS_REVOKE_KEY, &[&id, &At(now)]).await?;
    let row = row.ok_or(Refused::NotFound("key"))?;
    Ok((row.instant_opt("revoked_before")?, key_of(&row)?))
}

pub(super) fn key_of(row: &Row) -> Done<StoredKey> {
    let digest: &[u8] = row.field("digest")?;
    Ok(StoredKey {
        id: CredentialId::parse(row.field("id")?).map_err(unreadable)?,
        account_id: AccountId::parse(row.field("account_id")?).map_err(unreadable)?,
        digest: KeyDigest::from_bytes(digest.try_into().map_err(unreadable)?),
        mode: if row.field("livemode")? { Mode::Live } else { Mode::Test },
        name: row.field("name")?,
        hint: row.field("hint")?,
        scopes: row.field::<Vec<&str>>("scopes")?.into_iter().map(Scope::from).collect(),
        created_at: row.instant("created_at")?,
        last_used_at: row.instant_opt("last_used_at")?,
        expires_at: row.instant_opt("expires_at")?,
        revoked_at: row.instant_opt("revoked_at")?,
    })
}

/// Reads the account of a key's row as the public API has it, and how it stands.
pub(super) fn standing_of(row: &Row) -> Done<(model::Account, AccountStatus)> {
    let id = AccountId::parse(row.field("account_id")?).map_err(unreadable)?;
    let mut account = model::Account::new(id.clone(), row.field::<&str>("timezone")?);
    account.business_name = row.field("business_name")?;
    let status = AccountStatus {
        account_id: id,
        closing: row.field("closing")?,
        subscribed: row.field("subscription_active")?,
        api_in_plan: plan_of(row)?.public_api,
    };
    Ok((account, status))
}

fn account_of(row: &Row) -> Done<Account> {
    let calls: i64 = row.field("calls")?;
    Ok(Account {
        id: AccountId::parse(row.field("id")?).map_err(unreadable)?,
        business_name: row.field("business_name")?,
        timezone: row.field("timezone")?,
        plan: plan_of(row)?,
        subscription_active: row.field("subscription_active")?,
        closing: row.field("closing")?,
        calls: calls.unsigned_abs(),
    })
}
