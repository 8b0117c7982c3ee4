//! Logins of the dashboard that every process has to know.

use std::collections::HashMap;

use call_assistant::id::AccountId;
use deadpool_postgres::GenericClient;

use super::{accounts, breaks_reference};
use crate::db::{At, Database, DbError};
use crate::sql::store as sql;
use host::store::LoginRow;
use host::store::{Done, Refused};

/// Finds logins by the digests of their secrets.
pub(super) async fn look_up(
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
