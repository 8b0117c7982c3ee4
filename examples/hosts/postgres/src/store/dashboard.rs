//! The operations of the dashboard, each one step.

use std::sync::Arc;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, DeliveryId, EndpointId};
use call_assistant::model::Call;
use call_assistant::rest::Mode;
use call_assistant::rest::server::StoredKey;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::RecoveryFilter;
use deadpool_postgres::{Object, Transaction};
use serde_json::{Value, json};

use super::deliveries::{self, DeliveryKey};
use super::endpoints::{self, Locked, StoredEndpoint};
use super::{Postgres, accounts, alerts, calls, levers, recoveries};
// What is stored here is compared by other processes: nothing of it is of this one's clock.
use crate::journal::{self, Deed};
use crate::queue::{self, Accepted};
use crate::sql::store as sql;
use host::log;
use host::store::levers::{Cancelled, LeverOf, LeverRow, Levers};
use host::store::scope::{Allowed, Among, By, Operator};
use host::store::{
    Account, AccountChange, AlertPage, AlertRow, Day, DeliveryFilter, DeliveryPage, DeliveryRow,
    Done, Enabled, EndpointEdit, EndpointRow, Fleet, JournalRow, LastHour, List, LoginRow,
    MOST_TROUBLED, MOST_WAITING, Metrics, Missed, NewAccount, NewEndpoint, NewSecret, PageOf, Part,
    PartRows, Place, RecoveryPage, RecoveryRow, Refused, Store, Writes, bounds,
};
use host::trace::TraceParent;

impl Store for Postgres {
    fn now(&self) -> Timestamp {
        self.dashboard.now()
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
        search: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> Done<List<Account>> {
        self.dashboard.read(async |client| accounts::page(client, search, after, limit).await).await
    }

    async fn account(&self, id: Allowed<'_, Account>) -> Done<Account> {
        self.dashboard.read(async |client| accounts::one(client, id.as_str()).await).await
    }

    async fn add_account(&self, by: Operator, new: Account) -> Done<Account> {
        let id = new.id.as_str();
        self.act(async |change| {
            if !accounts::insert(change, &new).await? {
                let why = "an account with this id already exists";
                return Err(Refused::Conflict(why.into()));
            }
            let deed = Deed::new(by.by(), "account.created", Some(id), id);
            let deed = deed.changing(Value::Null, standing(&new));
            Ok((accounts::one(change, id).await?, deed))
        })
        .await
    }

    async fn change_account(&self, by: Operator, id: &str, change: AccountChange) -> Done<Account> {
        self.act(async |stored| {
            let before = accounts::locked(stored, id).await?;
            let after = accounts::change(stored, id, change).await?;
            let deed = Deed::new(by.by(), "account.changed", Some(id), id);
            let deed = deed.changing(standing(&before), standing(&after));
            Ok((after, deed))
        })
        .await
    }

    async fn knows_timezone(&self, _: Operator, name: &str) -> Done<bool> {
        let knows = async |client: &Object| sql::accounts_timezone(client, name).await;
        Ok(self.dashboard.read(knows).await?)
    }

    async fn keys(&self, of: Allowed<'_, Account>, part: Part<'_>) -> Done<List<StoredKey>> {
        self.dashboard.read(async |client| accounts::keys(client, of.as_str(), part).await).await
    }

    async fn key(&self, id: Allowed<'_, StoredKey>) -> Done<StoredKey> {
        self.dashboard.read(async |client| accounts::key(client, id.as_str()).await).await
    }

    async fn add_key(&self, account: Allowed<'_, Account>, key: StoredKey) -> Done<()> {
        self.act(async |change| {
            accounts::check_keys(change, account.as_str(), account.by(), self.now()).await?;
            accounts::add_key(change, &key).await?;
            let (account, by) = (Some(account.as_str()), account.by());
            let deed = Deed::new(by, "key.created", account, key.id.as_str());
            let after = json!({
                "mode": key.mode,
                "scopes": key.scopes,
                "expires_at": key.expires_at,
            });
            Ok(((), deed.changing(Value::Null, after)))
        })
        .await
    }

    async fn revoke_key(&self, id: Allowed<'_, StoredKey>) -> Done<StoredKey> {
        self.act(async |change| {
            let (before, key) = accounts::revoke(change, id.as_str(), self.now()).await?;
            let revoked = |at: Option<Timestamp>| json!({ "revoked_at": at });
            let deed = Deed::to(id, "key.revoked", &key.account_id);
            let deed = deed.changing(revoked(before), revoked(key.revoked_at));
            Ok((key, deed))
        })
        .await
    }

    async fn calls(&self, page: PageOf<'_>) -> Done<List<Call>> {
        self.dashboard.read(async |client| calls::latest(client, page).await).await
    }

    // The outbox: the call and its event are one transaction.
    async fn record_call<E: From<Refused> + Send>(
        &self,
        by: Operator,
        account: &AccountId,
        trace: Option<&TraceParent>,
        compose: impl FnOnce(Timestamp) -> Result<(Call, Option<EventBody>), E> + Send,
    ) -> Result<Vec<DeliveryId>, E> {
        let accepted = self.act(async |change| {
            let now = queue::started_at(change).await?;
            let (call, event) = match compose(now) {
                Ok(composed) => composed,
                // Nothing is written yet.
                Err(error) => return Ok((Err(error), None)),
            };
            let calls = std::slice::from_ref(&call);
            if calls::insert(change, account, Mode::Live, calls).await? == 0 {
                // It may be stored where a COMMIT was given up, and be at no standby yet.
                queue::wait_for_standby(change).await?;
                let exists = Refused::Conflict("a call with this id already exists".into());
                return Ok((Err(exists.into()), None));
            }
            let accepted = match &event {
                Some(event) => queue::accept(change, event, None, trace, now).await?,
                None => Accepted::Again,
            };
            let (account, call) = (Some(account.as_str()), call.id.as_str());
            Ok((Ok(accepted), Some(Deed::new(by.by(), "call.recorded", account, call))))
        });
        Ok(self.count(&accepted.await??))
    }

    async fn accept<E: From<Refused> + Send>(
        &self,
        to: Among<'_, EndpointRow>,
        trace: Option<&TraceParent>,
        compose: impl FnOnce(Timestamp) -> Result<EventBody, E> + Send,
    ) -> Result<Vec<DeliveryId>, E> {
        let accepted = self.act(async |change| {
            let now = queue::started_at(change).await?;
            let event = match compose(now) {
                Ok(event) => event,
                Err(error) => return Ok((Err(error), None)),
            };
            let only = match to.one() {
                Some(id) => Some(endpoints::one(change, &self.ring, id, now).await?.number),
                None => None,
            };
            let accepted = queue::accept(change, &event, only, trace, now).await?;
            let (account, id) = (Some(event.account_id().as_str()), event.id().as_str());
            Ok((Ok(accepted), Some(Deed::new(to.by(), "event.emitted", account, id))))
        });
        Ok(self.count(&accepted.await??))
    }

    async fn endpoints(&self, page: PageOf<'_>) -> Done<List<EndpointRow>> {
        let (ring, now) = (&self.ring, self.now());
        self.dashboard.read(async |client| endpoints::page(client, ring, page, now).await).await
    }

    async fn endpoint(&self, id: Allowed<'_, EndpointRow>) -> Done<EndpointRow> {
        let now = self.now();
        Ok(self
            .dashboard
            .read(async |client| endpoints::one(client, &self.ring, id.as_str(), now).await)
            .await?
            .shown)
    }

    async fn add_endpoint(
        &self,
        account: Allowed<'_, Account>,
        new: NewEndpoint,
    ) -> Done<EndpointRow> {
        let now = self.now();
        self.act(async |change| {
            let owner = accounts::one(change, new.account_id.as_str()).await?;
            owner.plan.webhooks.check_webhooks()?;
            endpoints::insert(change, &self.ring, self.endpoint_limit, &new, now).await?;
            let row = endpoints::one(change, &self.ring, new.id.as_str(), now).await?.shown;
            let deed = endpoint_deed(account.by(), "endpoint.created", None, &row);
            Ok((row, deed))
        })
        .await
    }

    async fn edit_endpoint(
        &self,
        id: Allowed<'_, EndpointRow>,
        edit: EndpointEdit,
    ) -> Done<EndpointRow> {
        let edit = async |change: &Transaction<'_>, locked: &mut Locked| {
            endpoints::edit(change, locked, &edit).await
        };
        Ok(self.change_endpoint(id, "endpoint.changed", edit).await?.0.shown)
    }

    async fn pause(&self, id: Allowed<'_, EndpointRow>) -> Done<EndpointRow> {
        self.disable(id, "endpoint.disabled", false).await
    }

    async fn enable(&self, id: Allowed<'_, EndpointRow>) -> Done<Enabled> {
        let (now, name) = (self.now(), id.as_str());
        let enable = async |change: &Transaction<'_>, locked: &mut Locked| {
            endpoints::enable(change, locked).await
        };
        let (found, enabled) = self.change_endpoint(id, "endpoint.enabled", enable).await?;
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
                log::warn!(
                    endpoint = name,
                    error = format!("{error:?}"),
                    "missed deliveries are not counted",
                );
                (Vec::new(), None)
            }
        };
        let missed = missed.into_iter().map(DeliveryKey::public).collect();
        Ok(Enabled { endpoint: found.shown, missed, counted })
    }

    async fn delete_endpoint(&self, id: Allowed<'_, EndpointRow>) -> Done<EndpointRow> {
        self.disable(id, "endpoint.deleted", true).await
    }

    async fn rotate_secret(
        &self,
        id: Allowed<'_, EndpointRow>,
        new: NewSecret,
    ) -> Done<EndpointRow> {
        self.act(async |change| {
            let mut locked = endpoints::lock(change, &self.ring, id.as_str(), self.now()).await?;
            endpoints::rotate(change, &self.ring, &mut locked, new).await?;
            let row = locked.found.shown;
            let deed = endpoint_deed(id.by(), "endpoint.rotated", None, &row);
            Ok((row, deed))
        })
        .await
    }

    async fn last_hour(&self, account: Allowed<'_, Account>) -> Done<Vec<(EndpointId, LastHour)>> {
        let account = account.as_str();
        let now = self.now();
        self.dashboard.read(async |client| endpoints::last_hour(client, account, now).await).await
    }

    async fn day(
        &self,
        account: Allowed<'_, Account>,
        from: Timestamp,
    ) -> Done<Vec<(EndpointId, Day)>> {
        let account = account.as_str();
        self.dashboard.read(async |client| endpoints::day(client, account, from).await).await
    }

    async fn deliveries(
        &self,
        account: Allowed<'_, Account>,
        filter: &DeliveryFilter,
    ) -> Done<DeliveryPage> {
        let account = account.as_str();
        let now = self.now();
        self.dashboard
            .snapshot(async |client| {
                let of = endpoints::places(client, account, true).await?;
                deliveries::page(client, &of, filter, now).await
            })
            .await
    }

    async fn delivery(&self, id: Allowed<'_, DeliveryRow>) -> Done<DeliveryRow> {
        let key: DeliveryKey = id.as_str().parse()?;
        self.dashboard
            .snapshot(async |client| {
                deliveries::one_with_requests(client, &self.ring, key, self.now()).await
            })
            .await
    }

    async fn redeliver(&self, id: Allowed<'_, DeliveryRow>) -> Done<DeliveryRow> {
        let (key, now): (DeliveryKey, _) = (id.as_str().parse()?, self.now());
        self.act(async |change| {
            deliveries::redeliver(change, key, now).await?;
            let row = deliveries::one(change, key, now).await?;
            let made = row.log.iter().filter(|attempt| attempt.entry.manual).count();
            bounds::MANUAL_ATTEMPTS.check(id.by(), made)?;
            let deed = Deed::to(id, "delivery.redelivered", &row.account_id);
            Ok((row, deed))
        })
        .await
    }

    async fn send_now(&self, id: Allowed<'_, DeliveryRow>) -> Done<DeliveryRow> {
        let (key, now): (DeliveryKey, _) = (id.as_str().parse()?, self.now());
        self.act(async |change| {
            deliveries::send_now(change, key, now).await?;
            let row = deliveries::one(change, key, now).await?;
            let deed = Deed::to(id, "delivery.sent", &row.account_id);
            Ok((row, deed))
        })
        .await
    }

    async fn count_missed(
        &self,
        endpoint: Allowed<'_, EndpointRow>,
        missed: &RecoveryFilter,
    ) -> Done<Missed> {
        let now = self.now();
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
        missed: RecoveryFilter,
    ) -> Done<RecoveryRow> {
        let now = self.now();
        self.act(async |change| {
            let found = endpoints::one(change, &self.ring, endpoint.as_str(), now).await?;
            let row = recoveries::start(change, &found, missed, now).await?;
            let account = Some(found.shown.account_id.as_str());
            let deed = Deed::new(endpoint.by(), "recovery.started", account, &row.id);
            let after = json!({ "endpoint_id": endpoint.as_str(), "from": row.missed.from() });
            Ok((row, deed.changing(Value::Null, after)))
        })
        .await
    }

    async fn recover_all(
        &self,
        of: Among<'_, Account>,
        missed: RecoveryFilter,
        after: Option<&str>,
    ) -> Done<RecoveryPage> {
        let now = self.now();
        self.act(async |change| {
            let page = recoveries::start_all(change, of.one(), &missed, after, now).await?;
            let target = of.one().unwrap_or("all accounts");
            let deed = Deed::new(of.by(), "recoveries.started", of.one(), target);
            let started = json!({ "started": page.started.len() });
            Ok((page, deed.changing(Value::Null, started)))
        })
        .await
    }

    async fn recoveries(&self, page: PageOf<'_>) -> Done<List<RecoveryRow>> {
        self.dashboard.read(async |client| recoveries::page(client, page).await).await
    }

    async fn recovery(&self, id: Allowed<'_, RecoveryRow>) -> Done<RecoveryRow> {
        self.dashboard.read(async |client| recoveries::one(client, id.as_str()).await).await
    }

    async fn pause_recovery(
        &self,
        id: Allowed<'_, RecoveryRow>,
        paused: bool,
    ) -> Done<RecoveryRow> {
        self.act(async |change| {
            let (row, is_changed) = recoveries::pause(change, id.as_str(), paused).await?;
            let action = if paused { "recovery.paused" } else { "recovery.continued" };
            let deed = is_changed.then(|| Deed::to(id, action, &row.account_id));
            Ok((row, deed))
        })
        .await
    }

    async fn cancel_recovery(&self, id: Allowed<'_, RecoveryRow>) -> Done<RecoveryRow> {
        self.act(async |change| {
            let (row, is_changed) = recoveries::cancel(change, id.as_str(), self.now()).await?;
            let deed = is_changed.then(|| Deed::to(id, "recovery.cancelled", &row.account_id));
            Ok((row, deed))
        })
        .await
    }

    async fn alerts(&self, page: PageOf<'_>) -> Done<PartRows<AlertRow>> {
        self.dashboard.read(async |client| alerts::latest(client, page).await).await
    }

    async fn alert(&self, id: Allowed<'_, AlertRow>) -> Done<AlertRow> {
        self.dashboard.read(async |client| alerts::one(client, id.as_str()).await).await
    }

    async fn all_alerts(&self, _: Operator, of: Place<'_>, limit: usize) -> Done<AlertPage> {
        let has_new = async |client: &Object| sql::alerts_new(client).await;
        if matches!(of, Place::After(_)) && self.dashboard.read(has_new).await? {
            self.dashboard.change(async |change| alerts::number(change).await).await?;
        }
        self.dashboard.read(async |client| alerts::all(client, of, limit).await).await
    }

    async fn fleet(&self, _: Operator) -> Done<Fleet> {
        let most = i64::try_from(MOST_TROUBLED).unwrap_or(i64::MAX).saturating_add(1);
        let count = i64::try_from(MOST_WAITING).unwrap_or(i64::MAX).saturating_add(1);
        let read = async |client: &Object| {
            tokio::try_join!(sql::fleet_troubled(client, most, count), sql::fleet_hours(client))
        };
        let (mut troubled, hours) = self.dashboard.read(read).await?;
        let more = troubled.len() > MOST_TROUBLED;
        troubled.truncate(MOST_TROUBLED);
        Ok(Fleet { troubled, more, gauges: self.health.metrics().gauges, hours })
    }

    async fn acknowledge(&self, id: Allowed<'_, AlertRow>, by: Option<&str>) -> Done<AlertRow> {
        let now = self.now();
        self.act(async |change| {
            let (row, is_first) = alerts::acknowledge(change, id.as_str(), by, now).await?;
            let deed = is_first.then(|| Deed::to(id, "alert.acknowledged", &row.account_id));
            Ok((row, deed))
        })
        .await
    }

    async fn levers(&self, _: Operator) -> Done<Levers> {
        self.dashboard.read(async |client| levers::all(client).await).await
    }

    async fn levers_of(&self, account: Allowed<'_, Account>) -> Done<Vec<LeverRow>> {
        let of = Some(account.as_str());
        Ok(self
            .dashboard
            .read(async |client: &Object| levers::set_levers(client, of).await)
            .await?)
    }

    async fn set_lever(
        &self,
        by: Operator,
        of: LeverOf,
        per_second: u32,
        instead_of: Option<&str>,
    ) -> Done<LeverRow> {
        let (by, now) = (by.by(), self.now());
        self.act(async |change| {
            let who = by.as_str();
            let (before, set) = levers::set(change, &of, per_second, instead_of, who, now).await?;
            if before.as_ref().is_some_and(|before| before.id == set.id) {
                return Ok((set, None));
            }
            let (account, words) = (of.account_id.as_ref().map(AccountId::as_str), of.words());
            let deed = Deed::new(by, "lever.set", account, &words);
            let deed = deed.changing(json!(before), json!(set)).logged();
            Ok((set, Some(deed)))
        })
        .await
    }

    async fn undo_lever(&self, by: Operator, id: &str) -> Done<LeverRow> {
        self.act(async |change| {
            let undone = levers::undo(change, id).await?;
            let account = undone.of.account_id.as_ref().map(AccountId::as_str);
            let words = undone.of.words();
            let deed = Deed::new(by.by(), "lever.undone", account, &words);
            let deed = deed.changing(json!(undone), Value::Null).logged();
            Ok((undone, deed))
        })
        .await
    }

    async fn cancel_pending(
        &self,
        by: Operator,
        account: Allowed<'_, Account>,
        event_type: &str,
        after: Option<&str>,
    ) -> Done<Cancelled> {
        let (account, now) = (account.as_str(), self.now());
        self.act(async |change| {
            let done = levers::cancel(change, account, event_type, after, now).await?;
            if done.cancelled == 0 {
                return Ok((done, None));
            }
            let deed = Deed::new(by.by(), "deliveries.cancelled", Some(account), account);
            let step = json!({ "type": event_type, "cancelled": done.cancelled });
            Ok((done, Some(deed.changing(Value::Null, step).logged())))
        })
        .await
    }

    async fn login(&self, digest: [u8; 32]) -> Done<Option<LoginRow>> {
        let database = self.dashboard.clone();
        let look_up = move |digests| accounts::logins(database.clone(), digests);
        self.logins.ask(digest, 1, look_up).await
    }

    async fn write_login(&self, by: By, digest: [u8; 32], row: LoginRow) -> Done<()> {
        self.act(async |change| {
            accounts::write_login(change, digest, &row).await?;
            let made = row.account.as_ref().filter(|_| !row.ended).map(AccountId::as_str);
            Ok(((), made.map(|account| Deed::new(by, "link.made", Some(account), account))))
        })
        .await
    }

    async fn end_logins(&self, by: Operator, account: &str) -> Done<u64> {
        self.act(async |change| {
            let ended = accounts::end_logins(change, account).await?;
            let deed = Deed::new(by.by(), "links.revoked", Some(account), account);
            let deed = deed.changing(Value::Null, json!({ "revoked": ended }));
            Ok((ended, Some(deed).filter(|_| ended > 0)))
        })
        .await
    }

    async fn journal(&self, _: Operator, of: Place<'_>, limit: usize) -> Done<Vec<JournalRow>> {
        self.dashboard.read(async |client| journal::read(client, of, limit).await).await
    }

    async fn metrics(&self) -> Metrics {
        self.health.metrics()
    }

    async fn ready(&self) -> Done<Writes> {
        self.health.ready().await
    }
}

impl Postgres {
    /// Changes something, and notes the deed in the same transaction.
    async fn act<T, D: Into<Option<Deed>>>(
        &self,
        step: impl AsyncFnOnce(&Transaction<'_>) -> Done<(T, D)>,
    ) -> Done<T> {
        journal::act(&self.dashboard, step).await
    }

    /// Changes an endpoint that is locked, and notes how it was and how it is.
    async fn change_endpoint<T>(
        &self,
        id: Allowed<'_, EndpointRow>,
        action: &'static str,
        step: impl AsyncFnOnce(&Transaction<'_>, &mut Locked) -> Done<T>,
    ) -> Done<(StoredEndpoint, T)> {
        self.act(async |change| {
            let mut locked = endpoints::lock(change, &self.ring, id.as_str(), self.now()).await?;
            let before = locked.found.shown.clone();
            let done = step(change, &mut locked).await?;
            let deed = endpoint_deed(id.by(), action, Some(&before), &locked.found.shown);
            Ok(((locked.found, done), deed))
        })
        .await
    }

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
                    log::info!(account = id.as_str(), "an account was erased, and is not added");
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
            for (key, _) in &new.keys {
                accounts::add_key(change, key).await?;
            }
            for endpoint in &new.endpoints {
                let limit = self.endpoint_limit;
                endpoints::insert(change, &self.ring, limit, endpoint, self.now()).await?;
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
            self.health.counted.count(|tally| {
                deliveries.iter().for_each(|(_, _, delivery)| tally.accepted(delivery));
            });
        }
        ids(accepted)
    }

    /// Parks what is pending of an endpoint that is disabled, for people who look at it: what is not
    /// parked now is parked when it is due.
    fn park(&self, found: &StoredEndpoint, now: Timestamp) {
        let (database, number) = (self.dashboard.unhurried(), found.number);
        let parking = Arc::clone(&self.parking);
        tokio::spawn(async move {
            let _turn = parking.lock().await;
            if let Err(error) = host::sender::park(&database, number.cast_unsigned(), now).await {
                log::warn!(%error, "parking");
            }
        });
    }

    async fn disable(
        &self,
        id: Allowed<'_, EndpointRow>,
        action: &'static str,
        deletes: bool,
    ) -> Done<EndpointRow> {
        let (name, by) = (id.as_str(), id.by());
        let disable = async |change: &Transaction<'_>, locked: &mut Locked| {
            if !deletes {
                return endpoints::pause(change, locked).await;
            }
            endpoints::delete(change, locked).await?;
            let account = locked.found.shown.account_id.as_str();
            endpoints::check_deleted(change, account, by, self.now()).await?;
            Ok(levers::forget(change, by, account, Some(name)).await?)
        };
        let (found, ()) = self.change_endpoint(id, action, disable).await?;
        if let Some(reason) = found.shown.health.disabled() {
            let account = &found.shown.account_id;
            let (by, account, reason) = (by.as_str(), account.as_str(), reason.as_str());
            log::info!(by, account, endpoint = name, reason, "an endpoint is disabled");
        }
        self.park(&found, self.now());
        Ok(found.shown)
    }
}

/// Returns how an account stands, for the journal.
fn standing(account: &Account) -> Value {
    json!({
        "timezone": account.timezone,
        "plan": account.plan.name,
        "subscription_active": account.subscription_active,
        "closing": account.closing,
    })
}

/// Returns what is done to an endpoint, for the journal.
fn endpoint_deed(
    by: By,
    action: &'static str,
    before: Option<&EndpointRow>,
    after: &EndpointRow,
) -> Deed {
    let shown = |row: &EndpointRow| {
        let reason = row.health.disabled().map(|reason| reason.as_str());
        json!({ "url": row.url, "description": row.description, "disabled": reason })
    };
    let deed = Deed::new(by, action, Some(after.account_id.as_str()), after.id.as_str());
    deed.changing(before.map(shown).unwrap_or_default(), shown(after))
}

/// Returns the ids of what was accepted, in the order of the endpoints. What was accepted before has its own.
fn ids(accepted: &Accepted) -> Vec<DeliveryId> {
    let Accepted::New(deliveries) = accepted else { return Vec::new() };
    let mut keys: Vec<DeliveryKey> =
        deliveries.iter().map(|&(endpoint, id, _)| DeliveryKey { endpoint, id }).collect();
    keys.sort_unstable();
    keys.into_iter().map(DeliveryKey::public).collect()
}
