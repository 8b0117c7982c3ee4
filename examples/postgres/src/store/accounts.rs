//! Accounts and their keys.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CredentialId};
use call_assistant::model;
use call_assistant::rest::server::{AccountStatus, KeyDigest, StoredKey};
use call_assistant::rest::{Mode, Scope};
use deadpool_postgres::GenericClient;
use tokio_postgres::Row;

use super::{sql, unreadable};
use crate::db::{At, execute, query, query_opt};
use crate::host::plan::Plan;
use crate::host::rows::{Account, AccountChange};
use crate::host::store::{Done, Refused};

/// How far `last_used_at` may be behind the last use of a key.
pub(super) const NOTED: Duration = Duration::from_secs(60);

/// Every account.
pub(super) async fn all(client: &impl GenericClient) -> Done<Vec<Account>> {
    query(client, sql!("accounts"), &[]).await?.iter().map(account_of).collect()
}

/// One account.
pub(super) async fn one(client: &impl GenericClient, id: &str) -> Done<Account> {
    let row = query_opt(client, sql!("account"), &[&id]).await?;
    account_of(&row.ok_or(Refused::NotFound("account"))?)
}

/// Whether it was new.
pub(super) async fn insert(client: &impl GenericClient, new: &Account) -> Done<bool> {
    let inserted = execute(
        client,
        sql!("account_insert"),
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
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&id, &plan, &change.subscription_active, &change.closing];
    execute(client, sql!("account_change"), &parameters).await?;
    one(client, id).await
}

/// The keys of an account, oldest first.
pub(super) async fn keys(client: &impl GenericClient, account: &str) -> Done<Vec<StoredKey>> {
    let rows = query(client, sql!("keys"), &[&account]).await?;
    if rows.is_empty() {
        one(client, account).await?;
    }
    rows.iter().map(key_of).collect()
}

pub(super) async fn add_key(client: &impl GenericClient, key: &StoredKey) -> Done<()> {
    let scopes: Vec<&str> = key.scopes.iter().map(Scope::as_str).collect();
    let floor = |at: Option<Timestamp>| at.map(At);
    let inserted = execute(
        client,
        sql!("key_insert"),
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
        Ok(0) => Err(Refused::Conflict("a key of this id or secret is there already".into())),
        Ok(_) => Ok(()),
        Err(error) if super::steps::breaks_reference(&error) => Err(Refused::NotFound("account")),
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn revoke(
    client: &impl GenericClient,
    id: &str,
    now: Timestamp,
) -> Done<StoredKey> {
    let row = query_opt(client, sql!("key_revoke"), &[&id, &At(now)]).await?;
    key_of(&row.ok_or(Refused::NotFound("key"))?)
}

pub(super) fn key_of(row: &Row) -> Done<StoredKey> {
    let digest: &[u8] = row.try_get("digest")?;
    let instant = |name: &str| -> Done<Option<Timestamp>> {
        Ok(row.try_get::<_, Option<At>>(name)?.map(|at| at.0))
    };
    Ok(StoredKey {
        id: CredentialId::parse(row.try_get("id")?).map_err(unreadable)?,
        account_id: AccountId::parse(row.try_get("account_id")?).map_err(unreadable)?,
        digest: KeyDigest::from_bytes(digest.try_into().map_err(unreadable)?),
        mode: if row.try_get("livemode")? { Mode::Live } else { Mode::Test },
        name: row.try_get("name")?,
        hint: row.try_get("hint")?,
        scopes: row.try_get::<_, Vec<&str>>("scopes")?.into_iter().map(Scope::from).collect(),
        created_at: row.try_get::<_, At>("created_at")?.0,
        last_used_at: instant("last_used_at")?,
        expires_at: instant("expires_at")?,
        revoked_at: instant("revoked_at")?,
    })
}

/// The account of a key's row as the public API has it, and how it stands.
pub(super) fn standing_of(row: &Row) -> Done<(model::Account, AccountStatus)> {
    let id = AccountId::parse(row.try_get("account_id")?).map_err(unreadable)?;
    let mut account = model::Account::new(id.clone(), row.try_get::<_, &str>("timezone")?);
    account.business_name = row.try_get("business_name")?;
    let status = AccountStatus {
        account_id: id,
        closing: row.try_get("closing")?,
        subscribed: row.try_get("subscription_active")?,
        api_in_plan: plan_of(row)?.public_api,
    };
    Ok((account, status))
}

pub(super) fn plan_of(row: &Row) -> Done<Plan> {
    let name: &str = row.try_get("plan")?;
    Plan::named(name).ok_or_else(|| unreadable(format!("there is no plan {name}")))
}

fn account_of(row: &Row) -> Done<Account> {
    let calls: i64 = row.try_get("calls")?;
    Ok(Account {
        id: AccountId::parse(row.try_get("id")?).map_err(unreadable)?,
        business_name: row.try_get("business_name")?,
        timezone: row.try_get("timezone")?,
        plan: plan_of(row)?,
        subscription_active: row.try_get("subscription_active")?,
        closing: row.try_get("closing")?,
        calls: calls.unsigned_abs(),
    })
}
