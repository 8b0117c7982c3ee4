//! Logins of the dashboard that every process has to know.

use call_assistant::id::AccountId;
use deadpool_postgres::GenericClient;

use super::{accounts, breaks_reference};
use crate::db::At;
use crate::sql::store as sql;
use host::store::LoginRow;
use host::store::{Done, Refused};

/// Finds a login by the digest of its secret.
pub(super) async fn one(client: &impl GenericClient, digest: [u8; 32]) -> Done<Option<LoginRow>> {
    Ok(sql::logins_one(client, &digest).await?)
}

/// Writes a login, and forgets those that expired a day ago: no process's clock is that wrong.
pub(super) async fn write(
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
pub(super) async fn end(client: &impl GenericClient, account: &str) -> Done<u64> {
    accounts::one(client, account).await?;
    Ok(sql::logins_end(client, account).await?)
}
