//! What the public API looks up: three round trips a request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
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

use super::{Postgres, accounts, unreadable};
use crate::clock;
use crate::db::statements as sql;
use crate::db::{At, Fields as _, execute, query, query_opt};
use host::log;
use host::store::{ApiStore, Done, Refused};

/// Refusals that still hold, so that a credential that asks too often costs the database nothing.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<HashMap<(String, &'static str), Timestamp>>);

/// More credentials than this are not refused at the same time.
const REFUSALS: usize = 10_000;

impl ApiStore for Postgres {
    type Found = Option<(model::Account, AccountStatus)>;

    async fn identify(
        &self,
        received: Received,
        _now: Timestamp,
    ) -> Result<(Identified, Self::Found), Rejection> {
        // When a key expires, and when its use was noted, all processes agree on.
        let now = clock::database::now();
        let Some(digest) = received.digest().map(|digest| *digest.as_bytes()) else {
            return received.identify(None, now).map(|identified| (identified, None));
        };
        let found = self.api.read(async |client| {
            let row = query_opt(client, sql::API_KEY, &[&digest.as_slice()]).await?;
            let found = row
                .as_ref()
                .map(|row| Ok::<_, Refused>((accounts::key_of(row)?, accounts::standing_of(row)?)));
            let found = found.transpose()?;
            let stale = found.as_ref().filter(|(key, _)| {
                let last = key.last_used_at;
                last.is_none_or(|last| now.since(last).max(last.since(now)) >= accounts::NOTED)
            });
            if let Some((key, _)) = stale.filter(|(key, _)| key.revoked_at.is_none()) {
                execute(client, sql::API_NOTE_USE, &[&key.id.as_str(), &At(now)]).await?;
            }
            Ok(found)
        });
        match found.await {
            Ok(Some((key, standing))) => Ok((received.identify(Some(&key), now)?, Some(standing))),
            Ok(None) => Ok((received.identify(None, now)?, None)),
            Err(refused) => Err(failed(&refused, received.internal_error())),
        }
    }

    async fn admit(&self, identified: Identified, now: Timestamp) -> Result<Admitted, Rejection> {
        let quota = identified.quota();
        let window = (identified.credential_id().as_str().to_owned(), quota.name());
        if let Some(wait) = self.refusals.wait(&window, now) {
            return identified.admit_decided(Err(wait));
        }
        let per_minute = i32::from(quota.per_minute());
        let wait = self.api.write(async |client| {
            let parameters: [&(dyn ToSql + Sync); 3] = [&window.0, &window.1, &per_minute];
            let row = query_opt(client, sql::API_ADMIT, &parameters).await?;
            Ok::<_, Refused>(row.map(|row| row.field::<Option<i64>>(0)).transpose()?.flatten())
        });
        match wait.await {
            Ok(None) => identified.admit_decided(Ok(())),
            Ok(Some(micros)) => {
                let wait = Duration::from_micros(micros.max(0).unsigned_abs());
                self.refusals.note(window, now.saturating_add(wait), now);
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
        log::line(&format!("store: {why}"));
    }
    rejection
}

impl Refusals {
    fn wait(&self, window: &(String, &'static str), now: Timestamp) -> Option<Duration> {
        let refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.get(window).map(|until| until.since(now)).filter(|wait| !wait.is_zero())
    }

    fn note(&self, window: (String, &'static str), until: Timestamp, now: Timestamp) {
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.len() >= REFUSALS {
            refusals.retain(|_, until| *until > now);
        }
        if refusals.len() < REFUSALS {
            refusals.insert(window, until);
        }
    }
}
