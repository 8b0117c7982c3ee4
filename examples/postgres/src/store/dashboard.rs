//! The operations of the dashboard, each one step.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, DeliveryId, EndpointId};
use call_assistant::model::Call;
use call_assistant::rest::Mode;
use call_assistant::rest::server::StoredKey;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{MissedDeliveries, Target};

use tokio_postgres::IsolationLevel;

use super::deliveries::DeliveryKey;
use super::endpoints::{Change, Found};
use super::{Postgres, accounts, alerts, calls, deliveries, endpoints, recoveries, sql};
use crate::accept::{self, Accepted};
use crate::host::rows::{
    Account, AccountChange, AlertRow, DeliveryFilter, DeliveryPage, DeliveryRow, Enabled,
    EndpointRow, LastHour, Metrics, Missed, NewAccount, NewEndpoint, NewSecret, RecoveryRow,
};
use crate::host::store::{Done, Refused, Store};
use crate::support::{clock, log};

/// One step that reads: `$body` is `Done`, with `$client` as its connection.
macro_rules! read {
    ($store:ident, |$client:ident| $body:expr) => {
        $store
            .within(async {
                let session = $store.session().await?;
                let $client = &*session;
                let done = $body.await;
                session.end(done)
            })
            .await
    };
}

/// One step that reads with several statements what is true at one instant.
macro_rules! snapshot {
    ($store:ident, |$client:ident| $body:expr) => {
        $store
            .within(async {
                let mut session = $store.session().await?;
                let done = async {
                    let $client = session.build_transaction();
                    let $client = $client.isolation_level(IsolationLevel::RepeatableRead);
                    let $client = $client.read_only(true).start().await?;
                    let done: Done<_> = $body.await;
                    $client.commit().await?;
                    done
                };
                let done = done.await;
                session.end(done)
            })
            .await
    };
}

/// One step that changes: `$body` is `Done`, with `$change` as its transaction. It is committed where
/// the step succeeds, and leaves nothing where it does not.
macro_rules! change {
    ($store:ident, |$change:ident| $body:expr) => {
        $store
            .within(async {
                let mut session = $store.session().await?;
                let done = async {
                    let $change = session.transaction().await?;
                    let done: Done<_> = $body.await;
                    let done = done?;
                    $change.commit().await?;
                    Ok(done)
                };
                let done = done.await;
                session.end(done)
            })
            .await
    };
}

impl Store for Postgres {
    async fn load(&self, new: Vec<NewAccount>) -> Done<()> {
        for new in new {
            self.load_one(&new).await?;
        }
        Ok(())
    }

    async fn accounts(&self) -> Done<Vec<Account>> {
        read!(self, |client| accounts::all(client))
    }

    async fn account(&self, id: &str) -> Done<Account> {
        read!(self, |client| accounts::one(client, id))
    }

    async fn change_account(&self, id: &str, change: AccountChange) -> Done<Account> {
        change!(self, |client| accounts::change(&client, id, change))
    }

    async fn keys(&self, account: &str) -> Done<Vec<StoredKey>> {
        read!(self, |client| accounts::keys(client, account))
    }

    async fn add_key(&self, key: StoredKey) -> Done<()> {
        read!(self, |client| accounts::add_key(client, &key))
    }

    async fn revoke_key(&self, id: &str) -> Done<StoredKey> {
        read!(self, |client| accounts::revoke(client, id, clock::now()))
    }

    async fn latest_calls(&self, account: &str, most: usize) -> Done<Vec<Call>> {
        read!(self, |client| calls::latest(client, account, most))
    }

    // The outbox: the call and its event are one transaction.
    async fn record_call(
        &self,
        account: &AccountId,
        call: Call,
        event: Option<EventBody>,
    ) -> Done<Vec<DeliveryId>> {
        let accepted = change!(self, |change| async {
            if calls::insert(&change, account, Mode::Live, std::slice::from_ref(&call)).await? == 0
            {
                return Err(Refused::Conflict("a call of this id is there already".into()));
            }
            match &event {
                Some(event) => Ok(accept::accept(&change, event, None, clock::now()).await?),
                None => Ok(Accepted::Again),
            }
        })?;
        Ok(self.count(&accepted))
    }

    async fn accept(&self, event: EventBody, only: Option<&EndpointId>) -> Done<Vec<DeliveryId>> {
        let now = clock::now();
        let accepted = change!(self, |change| async {
            let only = match only {
                Some(id) => {
                    Some(endpoints::one(&change, &self.ring, id.as_str(), now).await?.number)
                }
                None => None,
            };
            Ok(accept::accept(&change, &event, only, now).await?)
        })?;
        Ok(self.count(&accepted))
    }

    async fn endpoints(&self, account: &str) -> Done<Vec<EndpointRow>> {
        let now = clock::now();
        let found =
            read!(self, |client| endpoints::of_account(client, &self.ring, account, false, now))?;
        Ok(found.into_iter().map(|found| found.shown).collect())
    }

    async fn endpoint(&self, id: &str) -> Done<EndpointRow> {
        let now = clock::now();
        Ok(read!(self, |client| endpoints::one(client, &self.ring, id, now))?.shown)
    }

    async fn add_endpoint(&self, new: NewEndpoint) -> Done<EndpointRow> {
        let now = clock::now();
        change!(self, |change| async {
            let account = accounts::one(&change, new.account_id.as_str()).await?;
            account.plan.webhooks.check_webhooks().map_err(Refused::Plan)?;
            endpoints::insert(&change, &self.ring, &new, now).await?;
            Ok(endpoints::one(&change, &self.ring, new.id.as_str(), now).await?.shown)
        })
    }

    async fn move_endpoint(&self, id: &str, target: Target) -> Done<EndpointRow> {
        let now = clock::now();
        change!(self, |change| endpoints::change_target(&change, &self.ring, id, &target, now))
    }

    async fn pause(&self, id: &str) -> Done<EndpointRow> {
        self.disable(id, Change::Pause).await
    }

    async fn enable(&self, id: &str) -> Done<Enabled> {
        let now = clock::now();
        let (found, enabled) =
            change!(self, |change| endpoints::enable(&change, &self.ring, id, now))?;
        let missed = match enabled {
            None => Vec::new(),
            Some(missed) => read!(self, |client| endpoints::missed(client, &found, &missed, now))?,
        };
        let missed = missed.into_iter().map(DeliveryKey::public).collect();
        Ok(Enabled { endpoint: found.shown, missed })
    }

    async fn delete_endpoint(&self, id: &str) -> Done<EndpointRow> {
        self.disable(id, Change::Delete).await
    }

    async fn rotate_secret(&self, id: &str, new: NewSecret) -> Done<EndpointRow> {
        let now = clock::now();
        change!(self, |change| endpoints::rotate(&change, &self.ring, id, new, now))
    }

    async fn last_hour(&self, account: &str) -> Done<Vec<(EndpointId, LastHour)>> {
        let now = clock::now();
        read!(self, |client| async {
            let of = endpoints::of_account(client, &self.ring, account, false, now).await?;
            endpoints::last_hour(client, &of, now).await
        })
    }

    async fn deliveries(&self, account: &str, filter: &DeliveryFilter) -> Done<DeliveryPage> {
        let now = clock::now();
        snapshot!(self, |client| async {
            let of = endpoints::of_account(&client, &self.ring, account, true, now).await?;
            deliveries::page(&client, &of, filter, now).await
        })
    }

    async fn delivery(&self, id: &str) -> Done<DeliveryRow> {
        let key: DeliveryKey = id.parse()?;
        snapshot!(self, |client| deliveries::one(&client, key, clock::now()))
    }

    async fn redeliver(&self, id: &str) -> Done<DeliveryRow> {
        let (key, now): (DeliveryKey, _) = (id.parse()?, clock::now());
        change!(self, |change| async {
            deliveries::redeliver(&change, key, now).await?;
            deliveries::one(&change, key, now).await
        })
    }

    async fn send_now(&self, id: &str) -> Done<DeliveryRow> {
        let (key, now): (DeliveryKey, _) = (id.parse()?, clock::now());
        change!(self, |change| async {
            deliveries::send_now(&change, key, now).await?;
            deliveries::one(&change, key, now).await
        })
    }

    async fn count_missed(&self, endpoint: &str, missed: &MissedDeliveries) -> Done<Missed> {
        let now = clock::now();
        snapshot!(self, |client| async {
            let found = endpoints::one(&client, &self.ring, endpoint, now).await?;
            recoveries::count(&client, &found, missed).await
        })
    }

    async fn recover(&self, endpoint: &str, missed: MissedDeliveries) -> Done<RecoveryRow> {
        let now = clock::now();
        change!(self, |change| async {
            let found = endpoints::one(&change, &self.ring, endpoint, now).await?;
            recoveries::start(&change, &found, missed, now).await
        })
    }

    async fn recoveries(&self, account: &str) -> Done<Vec<RecoveryRow>> {
        read!(self, |client| recoveries::all(client, account))
    }

    async fn recovery(&self, id: &str) -> Done<RecoveryRow> {
        read!(self, |client| recoveries::one(client, id))
    }

    async fn cancel_recovery(&self, id: &str) -> Done<RecoveryRow> {
        let now = clock::now();
        change!(self, |change| recoveries::cancel(&change, id, now))
    }

    async fn alerts(&self, account: &str) -> Done<Vec<AlertRow>> {
        read!(self, |client| alerts::latest(client, account))
    }

    async fn metrics(&self) -> Done<Metrics> {
        let gauges = read!(self, |client| deliveries::gauges(client, clock::now()))?;
        Ok(Metrics { sender: self.counted.read(), gauges })
    }

    async fn ready(&self) -> Done<()> {
        read!(self, |client| async {
            crate::db::query(client, sql!("ready"), &[]).await?;
            Ok(())
        })
    }
}

impl Postgres {
    /// Adds an account with all that belongs to it, unless it is there already.
    async fn load_one(&self, new: &NewAccount) -> Done<()> {
        let id = &new.account.id;
        // Nobody waits for an answer at the start: each statement has its time, and all of them
        // together may take longer than a step.
        let mut session = self.session().await?;
        let done = async {
            let change = session.transaction().await?;
            if !accounts::insert(&change, &new.account).await? {
                return Ok(());
            }
            for (key, _) in &new.keys {
                accounts::add_key(&change, key).await?;
            }
            for endpoint in &new.endpoints {
                endpoints::insert(&change, &self.ring, endpoint, clock::now()).await?;
            }
            calls::insert(&change, id, Mode::Live, &new.calls).await?;
            calls::insert(&change, id, Mode::Test, &new.test_calls).await?;
            change.commit().await?;
            Ok(())
        };
        let done = done.await;
        session.end(done)
    }

    /// Counts what was accepted, and returns its ids.
    fn count(&self, accepted: &Accepted) -> Vec<DeliveryId> {
        if let Accepted::New(deliveries) = accepted {
            self.counted.count(|tally| {
                deliveries.iter().for_each(|(_, _, delivery)| tally.accepted(delivery));
            });
        }
        ids(accepted)
    }

    /// Parks what is pending of an endpoint that is disabled, for people who look at it: what is not
    /// parked now is parked when it is due.
    fn park(&self, found: &Found, now: Timestamp) {
        let (database, number) = (self.database.clone(), found.number);
        tokio::spawn(async move {
            if let Err(error) = crate::deliveries::park(&database, number, now).await {
                log::line(&format!("parking of endpoint {number}: {error}"));
            }
        });
    }

    async fn disable(&self, id: &str, how: Change) -> Done<EndpointRow> {
        let now = clock::now();
        let found: Found =
            change!(self, |change| endpoints::disable(&change, &self.ring, id, how, now))?;
        if let Some(reason) = found.shown.health.disabled() {
            let account = &found.shown.account_id;
            log::line(&format!(
                "endpoint {id} of {account} disabled: {}; by its owner",
                reason.as_str()
            ));
        }
        self.park(&found, now);
        Ok(found.shown)
    }
}

/// Ids of what was accepted, in the order of the endpoints. What was accepted before has its own.
fn ids(accepted: &Accepted) -> Vec<DeliveryId> {
    let Accepted::New(deliveries) = accepted else { return Vec::new() };
    let mut keys: Vec<DeliveryKey> =
        deliveries.iter().map(|&(endpoint, id, _)| DeliveryKey { endpoint, id }).collect();
    keys.sort_unstable();
    keys.into_iter().map(DeliveryKey::public).collect()
}
