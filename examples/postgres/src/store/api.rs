//! What the public API looks up: three round trips a request, of which the first two are shared by the
//! requests that wait at the same time.

use std::sync::Arc;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId};
use call_assistant::model::{self, Call};
use call_assistant::rest::Mode;
use call_assistant::rest::server::{
    AccountStatus, Admitted, CallQuery, CallRow, CallsQuery, Identified, Received, Rejection,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::together::Together;
use super::windows::{self, Refusals, Window};
use super::{Postgres, keys, unreadable};
use crate::clock;
use crate::db::statements as sql;
use crate::db::{At, Fields as _, query, query_opt};
use host::log;
use host::store::{ApiStore, Done, Refused};

/// What the requests of a process share.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    keys: Together<[u8; 32], Option<keys::Found>>,
    windows: Together<Window, Option<Duration>>,
    refusals: Arc<Refusals>,
}

impl ApiStore for Postgres {
    type Found = Option<(model::Account, AccountStatus)>;

    async fn identify(
        &self,
        received: Received,
        _now: Timestamp,
    ) -> Result<(Identified, Self::Found), Rejection> {
        let found = match received.digest().map(|digest| *digest.as_bytes()) {
            Some(digest) => {
                let database = self.api.clone();
                let look_up = move |digests| keys::look_up(database.clone(), digests);
                self.shared.keys.ask(digest, look_up).await
            }
            None => Ok(None),
        };
        // When a key expires, all processes agree on.
        let now = clock::database::now();
        match found {
            Ok(Some((key, standing))) => Ok((received.identify(Some(&key), now)?, Some(standing))),
            Ok(None) => Ok((received.identify(None, now)?, None)),
            Err(refused) => Err(failed(&refused, received.internal_error())),
        }
    }

    async fn admit(&self, identified: Identified, now: Timestamp) -> Result<Admitted, Rejection> {
        let (window, refusals) = (Window::of(&identified), &self.shared.refusals);
        if let Some(wait) = refusals.wait(&window, now) {
            return identified.admit_decided(Err(wait));
        }
        let database = self.api.clone();
        let admit = move |windows| windows::admit(database.clone(), windows);
        match self.shared.windows.ask(window.clone(), admit).await {
            Ok(None) => identified.admit_decided(Ok(())),
            Ok(Some(wait)) => {
                refusals.note(window, now.saturating_add(wait), now);
                identified.admit_decided(Err(wait))
            }
            Err(refused) => Err(failed(&refused, identified.internal_error())),
        }
    }

    async fn status(
        &self,
        _id: &AccountId,
        found: Self::Found,
    ) -> Done<(model::Account, AccountStatus)> {
        found.ok_or(Refused::NotFound("account"))
    }

    async fn page(&self, asked: &CallsQuery) -> Done<Vec<CallRow>> {
        let created = asked.created().ceil_to_micros();
        let (after, id) = match asked.after() {
            Some((started_at, id)) => (started_at, id.as_str()),
            None => (Timestamp::MAX, ""),
        };
        let fetch = i64::try_from(asked.rows_to_read()).unwrap_or(i64::MAX);
        let parameters: [&(dyn ToSql + Sync); 7] = [
            &asked.account_id().as_str(),
            &asked.mode().is_live(),
            &At(created.created_after().unwrap_or(Timestamp::MIN)),
            &At(created.created_before().unwrap_or(Timestamp::MAX)),
            &At(after),
            &id,
            &fetch,
        ];
        self.api
            .read(async |client| {
                query(client, sql::API_PAGE, &parameters).await?.iter().map(call_of).collect()
            })
            .await
    }

    async fn call(&self, asked: &CallQuery) -> Done<Option<CallRow>> {
        let (account, id): (&AccountId, &CallId) = (asked.account_id(), asked.call_id());
        let parameters: [&(dyn ToSql + Sync); 3] =
            [&account.as_str(), &asked.mode().is_live(), &id.as_str()];
        self.api
            .read(async |client| {
                query_opt(client, sql::API_CALL, &parameters)
                    .await?
                    .as_ref()
                    .map(call_of)
                    .transpose()
            })
            .await
    }
}

/// A call, with the account and mode that its row names.
pub(super) fn call_of(row: &Row) -> Done<CallRow> {
    let live: bool = row.field("livemode")?;
    let account_id = AccountId::parse(row.field("account_id")?).map_err(unreadable)?;
    let body: &str = row.field("body")?;
    let call = Call::from_json(body.as_bytes()).map_err(unreadable)?;
    Ok(CallRow { account_id, mode: if live { Mode::Live } else { Mode::Test }, call })
}

/// Logs why a look-up failed.
fn failed(refused: &Refused, rejection: Rejection) -> Rejection {
    if let Refused::Unavailable(why) = refused {
        log::warn("store").because(why).write();
    }
    rejection
}
