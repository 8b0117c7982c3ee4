//! Logins of the dashboard that every process has to know.

use call_assistant::id::AccountId;
use deadpool_postgres::GenericClient;
use tokio_postgres::types::ToSql;

use super::{accounts, breaks_reference, unreadable};
use crate::db::statements as sql;
use crate::db::{At, Fields as _, execute, query_opt};
use host::store::LoginRow;
use host::store::{Done, Refused};

/// Finds a login by the digest of its secret.
pub(super) async fn one(client: &impl GenericClient, digest: [u8; 32]) -> Done<Option<LoginRow>> {
    let Some(row) = query_opt(client, sql::LOGINS_ONE, &[&digest.as_slice()]).await? else {
        return Ok(None);
    };
    let account: Option<&str> = row.field("account_id")?;
    Ok(Some(LoginRow {
        account: account.map(AccountId::parse).transpose().map_err(unreadable)?,
        expires_at: row.instant("expires_at")?,
        ended: row.field("ended")?,
    }))
}

/// Writes a login, and forgets those that expired a day ago: no process's clock is that wrong.
pub(super) async fn write(
    client: &impl GenericClient,
    digest: [u8; 32],
    row: &LoginRow,
) -> Done<()> {
    let account = row.account.as_ref().map(AccountId::as_str);
    let parameters: [&(dyn ToSql + Sync); 4] =
        [&digest.as_slice(), &account, &At(row.expires_at), &row.ended];
    match execute(client, sql::LOGINS_WRITE, &parameters).await {
        Ok(_) => Ok(()),
        Err(error) if breaks_reference(&error) => Err(Refused::NotFound("account")),
        Err(error) => Err(error.into()),
    }
}

/// Ends every login of an account's owner.
pub(super) async fn end(client: &impl GenericClient, account: &str) -> Done<u64> {
    accounts::one(client, account).await?;
    Ok(execute(client, sql::LOGINS_END, &[&account]).await?)
}
