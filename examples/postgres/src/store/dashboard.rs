//! The operations of the dashboard, each one step.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, DeliveryId, EndpointId};
use call_assistant::model::Call;
use call_assistant::rest::Mode;
use call_assistant::rest::server::StoredKey;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::MissedDeliveries;
use deadpool_postgres::Transaction;

use super::delivery_key::DeliveryKey;
use super::endpoints::{Change, StoredEndpoint};
use super::{
    Postgres, accounts, alerts, calls, deliveries, endpoints, levers, logins, monitoring,
    recoveries,
};
// What is stored here is compared by other processes: nothing of it is of this one's clock.
use crate::clock::database as clock;
use crate::queue::{self, Accepted};
use host::levers::{Cancelled, LeverOf, LeverRow, Levers, SenderRow};
use host::log;
use host::rows::{
    Account, AccountChange, AccountPage, AlertPage, AlertRow, DeliveryFilter, DeliveryPage,
    DeliveryRow, Enabled, EndpointEdit, EndpointRow, LastHour, LoginRow, Metrics, Missed,
    NewAccount, NewEndpoint, NewSecret, RecoveryPage, RecoveryRow, Writes,
};
use host::scope::{Allowed, Among, Operator};
use host::store::{Done, Refused, Store};

impl Store for Postgres {
    fn now(&self) -> Timestamp {
        clock::now()
    }

    async fn load(&self, new: Vec<NewAccount>) -> Done<()> {
        for new in new {
            self.load_one(&new).await?;
        }
        Ok(())
    }

    async fn accounts(
        &self,
        _: Operator,
        begins: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> Done<AccountPage> {
        self.dashboard.read(async |client| accounts::page(client, begins, after, limit).await).await
    }

    async fn account(&self, id: Allowed<'_, Account>) -> Done<Account> {
        self.dashboard.read(async |client| accounts::one(client, id.as_str()).await).await
    }

    async fn add_account(&self, _: Operator, new: Account) -> Done<Account> {
        self.dashboard
            .change(async |change| match accounts::insert(change, &new).await? {
                true => accounts::one(change, new.id.as_str()).await,
                false => Err(Refused::Conflict("an account with this id already exists".into())),
            })
            .await
    }

    async fn change_account(&self, _: Operator, id: &str, change: AccountChange) -> Done<Account> {
        self.dashboard.change(async |stored| accounts::change(stored, id, change).await).await
    }

    async fn keys(&self, account: Allowed<'_, Account>) -> Done<Vec<StoredKey>> {
        self.dashboard.read(async |client| accounts::keys(client, account.as_str()).await).await
    }

    async fn add_key(&self, _: Allowed<'_, Account>, key: StoredKey) -> Done<()> {
        self.dashboard.write(async |client| accounts::add_key(client, &key).await).await
    }

    async fn revoke_key(&self, id: Allowed<'_, StoredKey>) -> Done<StoredKey> {
        let id = id.as_str();
        self.dashboard.read(async |client| accounts::revoke(client, id, clock::now()).await).await
    }

    async fn latest_calls(&self, account: Allowed<'_, Account>, most: usize) -> Done<Vec<Call>> {
        let account = account.as_str();
        self.dashboard.read(async |client| calls::latest(client, account, most).await).await
    }

    // The outbox: the call and its event are one transaction.
    async fn record_call<E: From<Refused> + Send>(
        &self,
        _: Operator,
        account: &AccountId,
        compose: impl FnOnce(Timestamp) -> Result<(Call, Option<EventBody>), E> + Send,
    ) -> Result<Vec<DeliveryId>, E> {
        let accepted = self
            .dashboard
            .change(async |change| {
                let now = queue::started_at(change).await?;
                let (call, event) = match compose(now) {
                    Ok(composed) => composed,
                    // Nothing is written yet.
                    Err(error) => return Ok(Err(error)),
                };
                if calls::insert(change, account, Mode::Live, std::slice::from_ref(&call)).await?
                    == 0
                {
                    // It may be stored where a COMMIT was given up, and be at no standby yet.
                    queue::wait_for_standby(change).await?;
                    let exists = Refused::Conflict("a call with this id already exists".into());
                    return Ok(Err(exists.into()));
                }
                match &event {
                    Some(event) => Ok(Ok(queue::accept(change, event, None, None, now).await?)),
                    None => Ok(Ok(Accepted::Again)),
                }
            })
            .await??;
        Ok(self.count(&accepted))
    }

    async fn accept<E: From<Refused> + Send>(
        &self,
        to: Among<'_, EndpointRow>,
        compose: impl FnOnce(Timestamp) -> Result<EventBody, E> + Send,
    ) -> Result<Vec<DeliveryId>, E> {
        let accepted = self
            .dashboard
            .change(async |change| {
                let now = queue::started_at(change).await?;
                let event = match compose(now) {
                    Ok(event) => event,
                    Err(error) => return Ok(Err(error)),
                };
                let only = match to.one() {
                    Some(id) => Some(endpoints::one(change, &self.ring, id, now).await?.number),
                    None => None,
                };
                Ok::<_, Refused>(Ok(queue::accept(change, &event, only, None, now).await?))
            })
            .await??;
        Ok(self.count(&accepted))
    }

    async fn endpoints(&self, account: Allowed<'_, Account>) -> Done<Vec<EndpointRow>> {
        let now = clock::now();
        let found = self
            .dashboard
            .read(async |client| {
                endpoints::of_account(client, &self.ring, account.as_str(), false, now).await
            })
            .await?;
        Ok(found.into_iter().map(|found| found.shown).collect())
    }

    async fn endpoint(&self, id: Allowed<'_, EndpointRow>) -> Done<EndpointRow> {
        let now = clock::now();
        Ok(self
            .dashboard
            .read(async |client| endpoints::one(client, &self.ring, id.as_str(), now).await)
            .await?
            .shown)
    }

    async fn add_endpoint(&self, _: Allowed<'_, Account>, new: NewEndpoint) -> Done<EndpointRow> {
        let now = clock::now();
        self.dashboard
            .change(async |change| {
                let account = accounts::one(change, new.account_id.as_str()).await?;
                account.plan.webhooks.check_webhooks()?;
                endpoints::insert(change, &self.ring, self.endpoint_limit, &new, now).await?;
                Ok(endpoints::one(change, &self.ring, new.id.as_str(), now).await?.shown)
            })
            .await
    }

    async fn edit_endpoint(
        &self,
        id: Allowed<'_, EndpointRow>,
        edit: EndpointEdit,
    ) -> Done<EndpointRow> {
        let now = clock::now();
        self.dashboard
            .change(async |change| {
                endpoints::edit(change, &self.ring, id.as_str(), &edit, now).await
            })
            .await
    }

    async fn pause(&self, id: Allowed<'_, EndpointRow>) -> Done<EndpointRow> {
        self.disable(id.as_str(), Change::Pause).await
    }

    async fn enable(&self, id: Allowed<'_, EndpointRow>) -> Done<Enabled> {
        let id = id.as_str();
        let now = clock::now();
        let (found, enabled) = self
            .dashboard
            .change(async |change| endpoints::enable(change, &self.ring, id, now).await)
            .await?;
        let Some(missed) = enabled else {
            let counted = Some(Missed::default());
            return Ok(Enabled { endpoint: found.shown, missed: Vec::new(), counted });
        };
        let read = self.dashboard.read(async |client| {
            let newest = endpoints::missed(client, &found, &missed, now).await?;
            Ok::<_, Refused>((newest, recoveries::count(client, &found, &missed).await?))
        });
        // It is enabled by now, whatever comes of this.
        let (missed, counted) = match read.await {
            Ok((newest, counted)) => (newest, Some(counted)),
            Err(error) => {
                log::warn("what an endpoint missed is not counted")
                    .with("endpoint", id)
                    .because(&format!("{error:?}"))
                    .write();
                (Vec::new(), None)
            }
        };
        let missed = missed.into_iter().map(DeliveryKey::public).collect();
        Ok(Enabled { endpoint: found.shown, missed, counted })
    }

    async fn delete_endpoint(&self, id: Allowed<'_, EndpointRow>) -> Done<EndpointRow> {
        self.disable(id.as_str(), Change::Delete).await
    }

    async fn rotate_secret(
        &self,
        id: Allowed<'_, EndpointRow>,
        new: NewSecret,
    ) -> Done<EndpointRow> {
        let now = clock::now();
        self.dashboard
            .change(async |change| {
                endpoints::rotate(change, &self.ring, id.as_str(), new, now).await
            })
            .await
    }

    async fn last_hour(&self, account: Allowed<'_, Account>) -> Done<Vec<(EndpointId, LastHour)>> {
        let account = account.as_str();
        let now = clock::now();
        self.dashboard
            .read(async |client| {
                let of = endpoints::of_account(client, &self.ring, account, false, now).await?;
                endpoints::last_hour(client, &of, now).await
            })
            .await
    }

    async fn deliveries(
        &self,
        account: Allowed<'_, Account>,
        filter: &DeliveryFilter,
    ) -> Done<DeliveryPage> {
        let account = account.as_str();
        let now = clock::now();
        self.dashboard
            .snapshot(async |client| {
                let of = endpoints::of_account(client, &self.ring, account, true, now).await?;
                deliveries::page(client, &of, filter, now).await
            })
            .await
    }

    async fn delivery(&self, id: Allowed<'_, DeliveryRow>) -> Done<DeliveryRow> {
        let key: DeliveryKey = id.as_str().parse()?;
        self.dashboard
            .snapshot(async |client| {
                deliveries::one_with_requests(client, &self.ring, key, clock::now()).await
            })
            .await
    }

    async fn redeliver(&self, id: Allowed<'_, DeliveryRow>) -> Done<DeliveryRow> {
        let (key, now): (DeliveryKey, _) = (id.as_str().parse()?, clock::now());
        self.dashboard
            .change(async |change| {
                deliveries::redeliver(change, key, now).await?;
                deliveries::one(change, key, now).await
            })
            .await
    }

    async fn send_now(&self, id: Allowed<'_, DeliveryRow>) -> Done<DeliveryRow> {
        let (key, now): (DeliveryKey, _) = (id.as_str().parse()?, clock::now());
        self.dashboard
            .change(async |change| {
                deliveries::send_now(change, key, now).await?;
                deliveries::one(change, key, now).await
            })
            .await
    }

    async fn count_missed(
        &self,
        endpoint: Allowed<'_, EndpointRow>,
        missed: &MissedDeliveries,
    ) -> Done<Missed> {
        let now = clock::now();
        self.dashboard
            .snapshot(async |client| {
                let found = endpoints::one(client, &self.ring, endpoint.as_str(), now).await?;
                recoveries::count(client, &found, missed).await
            })
            .await
    }

    async fn recover(
        &self,
        endpoint: Allowed<'_, EndpointRow>,
        missed: MissedDeliveries,
    ) -> Done<RecoveryRow> {
        let now = clock::now();
        self.dashboard
            .change(async |change| {
                let found = endpoints::one(change, &self.ring, endpoint.as_str(), now).await?;
                recoveries::start(change, &found, missed, now).await
            })
            .await
    }

    async fn recover_all(
        &self,
        of: Among<'_, Account>,
        missed: MissedDeliveries,
        after: Option<&str>,
    ) -> Done<RecoveryPage> {
        let now = clock::now();
        self.dashboard
            .change(async |change| {
                recoveries::start_all(change, of.one(), &missed, after, now).await
            })
            .await
    }

    async fn recoveries(&self, account: Allowed<'_, Account>) -> Done<Vec<RecoveryRow>> {
        let account = account.as_str();
        self.dashboard.read(async |client| recoveries::all(client, account).await).await
    }

    async fn recovery(&self, id: Allowed<'_, RecoveryRow>) -> Done<RecoveryRow> {
        self.dashboard.read(async |client| recoveries::one(client, id.as_str()).await).await
    }

    async fn pause_recovery(
        &self,
        id: Allowed<'_, RecoveryRow>,
        paused: bool,
    ) -> Done<RecoveryRow> {
        let id = id.as_str();
        self.dashboard.change(async |change| recoveries::pause(change, id, paused).await).await
    }

    async fn cancel_recovery(&self, id: Allowed<'_, RecoveryRow>) -> Done<RecoveryRow> {
        let id = id.as_str();
        let now = clock::now();
        self.dashboard.change(async |change| recoveries::cancel(change, id, now).await).await
    }

    async fn alerts(&self, account: Allowed<'_, Account>) -> Done<Vec<AlertRow>> {
        let account = account.as_str();
        self.dashboard.read(async |client| alerts::latest(client, account).await).await
    }

    async fn alerts_after(&self, _: Operator, after: u64, limit: usize) -> Done<AlertPage> {
        if self.dashboard.read(async |client| alerts::has_new(client).await).await? {
            self.dashboard.change(async |change| alerts::number(change).await).await?;
        }
        self.dashboard.read(async |client| alerts::after(client, after, limit).await).await
    }

    async fn acknowledge(&self, id: Allowed<'_, AlertRow>, by: &str) -> Done<AlertRow> {
        let (id, now) = (id.as_str(), clock::now());
        self.dashboard.change(async |change| alerts::acknowledge(change, id, by, now).await).await
    }

    async fn levers(&self, _: Operator) -> Done<Levers> {
        self.dashboard.read(async |client| levers::all(client).await).await
    }

    async fn set_lever(
        &self,
        _: Operator,
        of: LeverOf,
        per_second: u32,
        who: &str,
    ) -> Done<LeverRow> {
        let (now, what) = (clock::now(), format!("{per_second} attempts a second:"));
        let set =
            async |change: &Transaction<'_>| levers::set(change, &of, per_second, who, now).await;
        self.act((who, &what, &of.words()), set).await
    }

    async fn undo_lever(&self, _: Operator, id: &str, who: &str) -> Done<LeverRow> {
        let undo = async |change: &Transaction<'_>| levers::undo(change, id).await;
        self.act((who, "undo", id), undo).await
    }

    async fn drain(&self, _: Operator, sender: &str, drained: bool, who: &str) -> Done<SenderRow> {
        let what = if drained { "drain" } else { "undo the drain of" };
        let drain = async |change: &Transaction<'_>| levers::drain(change, sender, drained).await;
        self.act((who, what, sender), drain).await
    }

    async fn cancel_pending(
        &self,
        _: Operator,
        account: Allowed<'_, Account>,
        event_type: &str,
        after: Option<&str>,
        who: &str,
    ) -> Done<Cancelled> {
        let (account, now) = (account.as_str(), clock::now());
        let cancel = async |change: &Transaction<'_>| {
            levers::cancel(change, account, event_type, after, now).await
        };
        let what = format!("cancel what is pending of {event_type} of");
        self.act((who, &what, account), cancel).await
    }

    async fn login(&self, digest: [u8; 32]) -> Done<Option<LoginRow>> {
        self.dashboard.read(async |client| logins::one(client, digest).await).await
    }

    async fn write_login(&self, digest: [u8; 32], row: LoginRow) -> Done<()> {
        self.dashboard.write(async |client| logins::write(client, digest, &row).await).await
    }

    async fn end_logins(&self, _: Operator, account: &str) -> Done<u64> {
        self.dashboard.change(async |change| logins::end(change, account).await).await
    }

    async fn metrics(&self) -> Metrics {
        self.readings.metrics(&self.monitoring, &self.counted).await
    }

    async fn ready(&self) -> Done<Writes> {
        if let Some(why) = self.counted.idle() {
            return Err(Refused::Unavailable(why.into()));
        }
        if self.counted.is_without_key() {
            let why = "the key ring lacks a key that is in use; `call_assistant_unreadable_secrets` counts";
            return Err(Refused::Unavailable(why.into()));
        }
        match monitoring::writes(&self.monitoring).await? {
            // Requests that read are answered all the same: a load balancer would take out every process.
            Writes::Waiting if self.only_sends => {
                let why = "no result can be stored: a COMMIT waits for a standby server";
                Err(Refused::Unavailable(why.into()))
            }
            writes => Ok(writes),
        }
    }
}

impl Postgres {
    /// Adds an account with all that belongs to it, unless it is there already or was erased.
    async fn load_one(&self, new: &NewAccount) -> Done<()> {
        let id = &new.account.id;
        // Nobody waits for an answer at the start: each statement has its time, and all of them
        // together may take longer than a step.
        let add = async |change: &Transaction<'_>| {
            match accounts::insert(change, &new.account).await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if error.is_erased() => {
                    log::info("an account was erased, and is not added")
                        .with("account", id.as_str())
                        .write();
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
            for (key, _) in &new.keys {
                accounts::add_key(change, key).await?;
            }
            for endpoint in &new.endpoints {
                let limit = self.endpoint_limit;
                endpoints::insert(change, &self.ring, limit, endpoint, clock::now()).await?;
            }
            calls::insert(change, id, Mode::Live, &new.calls).await?;
            calls::insert(change, id, Mode::Test, &new.test_calls).await?;
            Ok(())
        };
        self.dashboard.unhurried().change(add).await
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
    fn park(&self, found: &StoredEndpoint, now: Timestamp) {
        let (database, number) = (self.dashboard.unhurried(), found.number);
        tokio::spawn(async move {
            if let Err(error) = queue::park(&database, number, now).await {
                log::warn("parking").because(&error).write();
            }
        });
    }

    async fn disable(&self, id: &str, how: Change) -> Done<EndpointRow> {
        let now = clock::now();
        let found = self
            .dashboard
            .change(async |change| endpoints::disable(change, &self.ring, id, how, now).await)
            .await?;
        if let Some(reason) = found.shown.health.disabled() {
            let account = &found.shown.account_id;
            log::info("an endpoint is disabled by its owner")
                .with("account", account.as_str())
                .with("endpoint", id)
                .with("reason", reason.as_str())
                .write();
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
