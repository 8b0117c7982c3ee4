//! The store behind the traits of `examples/hosts/kit`, which it answers at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, DeliveryId, EndpointId};
use call_assistant::model::{self, Call};
use call_assistant::rest::Mode;
use call_assistant::rest::server::{
    AccountStatus, Admitted, CallQuery, CallRow, CallsQuery, Identified, KeyState, RateWindows,
    Received, StoredKey,
};
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::RecoveryFilter;

use crate::store::{AccountRow, Store, Tables};
use host::sender::Load;
use host::store::scope::{Allowed, Among, By, Operator};
use host::store::{
    Account, AccountChange, AlertPage, AlertRow, ApiStore, CallPage, Day, DeliveryFilter,
    DeliveryPage, DeliveryRow, Done, Enabled, EndpointEdit, EndpointRow, Fleet, LastHour, List,
    LoginRow, MOST_LISTED, Metrics, Missed, NewAccount, NewEndpoint, NewSecret, PageOf, Part,
    PartRows, Place, RecoveryPage, RecoveryRow, Refused, Rejected, Standing, Store as Shared,
    Writes, bounds, call_place, place, place_of_call,
};
use host::trace::TraceParent;
use host::{clock, lock};

/// The most links and ended logins of an hour: 4,096. Only operators make more.
const LOGINS: usize = 4096;

/// The most credentials that are active in one minute.
const WINDOWS: usize = 100_000;

/// The store, and what its sender has in flight. Clone it freely.
#[derive(Clone, Debug)]
pub struct Local {
    store: Arc<Store>,
    rates: Arc<Mutex<RateWindows>>,
    logins: Arc<Mutex<HashMap<[u8; 32], LoginRow>>>,
    load: Load,
}

impl Local {
    /// Creates the store.
    pub fn new(store: Arc<Store>, load: Load) -> Self {
        let rates = Arc::new(Mutex::new(RateWindows::new(WINDOWS)));
        Self { store, rates, logins: Arc::default(), load }
    }

    /// Changes an endpoint, and returns it as changed.
    fn changed(
        &self,
        id: &str,
        change: impl FnOnce(&mut Tables, Timestamp) -> Done<()>,
    ) -> Done<EndpointRow> {
        let (mut tables, now) = self.store.write();
        change(&mut tables, now)?;
        let (_, row) = tables.endpoint(id)?;
        Ok(tables.shown_endpoint(row, now))
    }

    /// Makes an attempt due, and returns its delivery as changed.
    fn again(
        &self,
        id: &str,
        change: impl FnOnce(&mut Tables, Timestamp) -> Done<()>,
    ) -> Done<DeliveryRow> {
        let (mut tables, now) = self.store.write();
        change(&mut tables, now)?;
        self.store.tell();
        tables.shown_delivery(tables.delivery(id)?, now)
    }
}

impl ApiStore for Local {
    async fn identify(
        &self,
        received: Received,
    ) -> Result<(Identified, Option<Standing>), Rejected> {
        let mut tables = self.store.lock();
        let key = received.digest().and_then(|digest| tables.key_of(digest.as_bytes()));
        let identified = received.identify(key.as_deref(), self.store.now())?;
        // A page shows it to the second.
        let every = Duration::from_secs(1);
        if key.is_some_and(|key| key.note_use(every, identified.used_at())) {
            tables.changed();
        }
        let row = tables.account(identified.account_id().as_str()).ok();
        let standing = row.map(|AccountRow { account: row, .. }| {
            let mut account = model::Account::new(row.id.clone(), row.timezone.as_str());
            account.business_name.clone_from(&row.business_name);
            let status = AccountStatus {
                account_id: row.id.clone(),
                closing: row.closing,
                subscribed: row.subscription_active,
                api_in_plan: row.plan.public_api,
            };
            (account, status)
        });
        Ok((identified, standing))
    }

    async fn admit(&self, identified: Identified) -> Result<Admitted, Rejected> {
        let mut rates = lock(&self.rates);
        Ok(identified.admit(&mut rates, self.store.now())?)
    }

    async fn page(&self, query: &CallsQuery) -> Done<CallPage> {
        let (tables, mode) = (self.store.lock(), query.mode());
        let row = tables.account(query.account_id().as_str())?;
        let (calls, walked_to) = row.calls(mode).page(query);
        let rows = calls.into_iter().map(|call| row.call_row(mode, call)).collect();
        Ok(CallPage { rows, walked_to })
    }

    async fn call(&self, query: &CallQuery) -> Done<Option<CallRow>> {
        let (tables, mode) = (self.store.lock(), query.mode());
        let row = tables.account(query.account_id().as_str())?;
        Ok(row.calls(mode).find(query.call_id()).map(|call| row.call_row(mode, call.clone())))
    }
}

impl Shared for Local {
    fn now(&self) -> Timestamp {
        self.store.now()
    }

    fn version(&self) -> Option<u64> {
        Some(self.store.lock().version())
    }

    async fn load(&self, accounts: Vec<NewAccount>) -> Done<()> {
        let (mut tables, now) = self.store.write();
        for new in accounts {
            tables.load(new, now)?;
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
        let after = place(after, 0)?;
        let tables = self.store.lock();
        let words = |text: &str| -> Vec<String> {
            let words = text.split(' ').filter(|word| !word.is_empty());
            words.map(str::to_lowercase).collect()
        };
        let searched = search.map(words).unwrap_or_default();
        let fits = |row: &AccountRow| {
            let Account { id, business_name, .. } = &row.account;
            let own = business_name.as_deref().map(words).unwrap_or_default();
            let has = |word: &String| own.iter().any(|it| it.starts_with(word));
            search.is_none_or(|search| id.as_str().starts_with(search))
                || !searched.is_empty() && searched.iter().all(has)
        };
        let rest = (1_usize..).zip(tables.accounts()).skip(after).filter(|(_, row)| fits(row));
        let found = rest.take(limit.saturating_add(1)).collect();
        Ok(PartRows::first(found, limit, |(at, _)| at.to_string(), |(_, row)| Ok(row.shown())))
    }

    async fn account(&self, id: Allowed<'_, Account>) -> Done<Account> {
        self.store.lock().account(id.as_str()).map(AccountRow::shown)
    }

    async fn add_account(&self, _: Operator, new: Account) -> Done<Account> {
        let mut tables = self.store.lock();
        tables.add_account(AccountRow::new(new.clone()))?;
        Ok(new)
    }

    async fn change_account(&self, _: Operator, id: &str, change: AccountChange) -> Done<Account> {
        let mut tables = self.store.lock();
        let row = tables.account_mut(id)?;
        let account = &mut row.account;
        if let Some(timezone) = change.timezone {
            account.timezone = timezone;
        }
        account.plan = change.plan.unwrap_or(account.plan);
        account.subscription_active =
            change.subscription_active.unwrap_or(account.subscription_active);
        account.closing = change.closing.unwrap_or(account.closing);
        Ok(row.shown())
    }

    async fn keys(&self, of: Allowed<'_, Account>, part: Part<'_>) -> Done<List<StoredKey>> {
        let tables = self.store.lock();
        let row = tables.account(of.as_str())?;
        let all = row.count_keys();
        let (from, most) = match part {
            Part::After(after, most) => (place(after, 0)?, most),
            Part::Newest(most) => (all.saturating_sub(most), most),
        };
        let end = from.saturating_add(most);
        let rows = tables.keys_from(row, from).take(most).cloned().map(Ok).collect();
        let next = matches!(part, Part::After(..)) && end < all;
        let more = next || matches!(part, Part::Newest(_)) && from > 0;
        Ok(PartRows { rows, next: next.then(|| end.to_string()), more })
    }

    async fn key(&self, id: Allowed<'_, StoredKey>) -> Done<StoredKey> {
        self.store.lock().key(id.as_str()).cloned()
    }

    async fn add_key(&self, account: Allowed<'_, Account>, key: StoredKey) -> Done<()> {
        let (mut tables, now) = self.store.write();
        let row = tables.account(account.as_str())?;
        let working = tables.keys(row).filter(|key| key.state(now) == KeyState::Valid);
        bounds::WORKING_KEYS.check(account.by(), working.count())?;
        let since = bounds::KEYS_MADE.since(now);
        let made = tables.keys(row).filter(|key| key.created_at >= since);
        bounds::KEYS_MADE.check(account.by(), made.count())?;
        tables.add_key(key)
    }

    async fn revoke_key(&self, id: Allowed<'_, StoredKey>) -> Done<StoredKey> {
        let (mut tables, now) = self.store.write();
        let key = tables.key_mut(id.as_str())?;
        key.revoke(now);
        Ok(key.clone())
    }

    async fn calls(&self, PageOf { account, after, limit }: PageOf<'_>) -> Done<List<Call>> {
        let (tables, after) = (self.store.lock(), call_place(after)?);
        let rows = tables.account(account.as_str())?.calls(Mode::Live).after(after);
        let rows: Vec<&Call> = rows.take(limit.saturating_add(1)).collect();
        let place = |call: &&Call| place_of_call(call.started_at, call.id.as_str());
        Ok(PartRows::first(rows, limit, place, |call| Ok(call.clone())))
    }

    async fn record_call<E: From<Refused> + Send>(
        &self,
        _: Operator,
        account: &AccountId,
        _: Option<&TraceParent>,
        compose: impl FnOnce(Timestamp) -> Result<(Call, Option<EventBody>), E> + Send,
    ) -> Result<Vec<DeliveryId>, E> {
        let (mut tables, now) = self.store.write();
        let (call, event) = compose(now)?;
        if tables.has_call(tables.account(account.as_str())?, &call.id) {
            return Err(Refused::Conflict("a call with this id already exists".into()).into());
        }
        tables.account_mut(account.as_str())?.calls_mut(Mode::Live).add(call)?;
        let accepted = match event {
            Some(event) => tables.accept(&event, None, now)?,
            None => Vec::new(),
        };
        self.store.tell();
        Ok(accepted)
    }

    async fn accept<E: From<Refused> + Send>(
        &self,
        to: Among<'_, EndpointRow>,
        _: Option<&TraceParent>,
        compose: impl FnOnce(Timestamp) -> Result<EventBody, E> + Send,
    ) -> Result<Vec<DeliveryId>, E> {
        let (mut tables, now) = self.store.write();
        let event = compose(now)?;
        let only = to.one().map(|id| tables.endpoint(id)).transpose()?;
        let only = only.map(|(number, _)| number);
        let accepted = tables.accept(&event, only, now)?;
        self.store.tell();
        Ok(accepted)
    }

    async fn endpoints(&self, page: PageOf<'_>) -> Done<List<EndpointRow>> {
        let PageOf { account, after, limit } = page;
        let (tables, now) = self.store.write();
        let from = place(after, 0)?;
        let rows = tables.endpoints(tables.account(account.as_str())?);
        let rows = rows.filter_map(|row| Some((tables.endpoint(row.id.as_str()).ok()?.0, row)));
        let rows = rows.filter(|(number, _)| *number >= from).take(limit.saturating_add(1));
        let next = |(number, _): &(u32, _)| number.saturating_add(1).to_string();
        let shown = |(_, row)| Ok(tables.shown_endpoint(row, now));
        Ok(PartRows::first(rows.collect(), limit, next, shown))
    }

    async fn endpoint(&self, id: Allowed<'_, EndpointRow>) -> Done<EndpointRow> {
        self.changed(id.as_str(), |_, _| Ok(()))
    }

    async fn add_endpoint(&self, _: Allowed<'_, Account>, new: NewEndpoint) -> Done<EndpointRow> {
        let id = new.id.clone();
        self.changed(id.as_str(), |tables, now| tables.add_endpoint(new, now))
    }

    async fn enable(&self, id: Allowed<'_, EndpointRow>) -> Done<Enabled> {
        let id = id.as_str();
        let (mut tables, now) = self.store.write();
        let missed = tables.enable(id, now)?;
        let (number, row) = tables.endpoint(id)?;
        let account = tables.account(row.account_id.as_str())?;
        let (mut newest, mut counted) = (Vec::new(), Missed::default());
        if let Some(missed) = missed {
            let of_it = tables.deliveries(account).filter(|row| row.endpoint == number);
            newest.extend(
                of_it
                    .filter(|row| missed.includes(&row.state))
                    .map(|row| row.id.clone())
                    .take(MOST_LISTED),
            );
            counted = tables.count_missed(id, &missed)?;
        }
        let endpoint = tables.shown_endpoint(row, now);
        Ok(Enabled { endpoint, missed: newest, counted: Some(counted) })
    }

    async fn edit_endpoint(
        &self,
        id: Allowed<'_, EndpointRow>,
        edit: EndpointEdit,
    ) -> Done<EndpointRow> {
        self.changed(id.as_str(), |tables, now| tables.edit_endpoint(id.as_str(), edit, now))
    }

    async fn pause(&self, id: Allowed<'_, EndpointRow>) -> Done<EndpointRow> {
        self.changed(id.as_str(), |tables, now| tables.pause(id.as_str(), now))
    }

    async fn delete_endpoint(&self, id: Allowed<'_, EndpointRow>) -> Done<EndpointRow> {
        self.changed(id.as_str(), |tables, now| {
            let deleted =
                tables.deleted_since(id.as_str(), bounds::ENDPOINTS_DELETED.since(now))?;
            bounds::ENDPOINTS_DELETED.check(id.by(), deleted)?;
            tables.delete(id.as_str(), now)
        })
    }

    async fn rotate_secret(
        &self,
        id: Allowed<'_, EndpointRow>,
        new: NewSecret,
    ) -> Done<EndpointRow> {
        self.changed(id.as_str(), |tables, now| tables.rotate(id.as_str(), new, now))
    }

    async fn last_hour(&self, account: Allowed<'_, Account>) -> Done<Vec<(EndpointId, LastHour)>> {
        let (tables, now) = self.store.write();
        let endpoints = tables.endpoints(tables.account(account.as_str())?);
        Ok(endpoints.map(|row| (row.id.clone(), row.hour.shown(now))).collect())
    }

    async fn day(
        &self,
        account: Allowed<'_, Account>,
        from: Timestamp,
    ) -> Done<Vec<(EndpointId, Day)>> {
        self.store.lock().day(account.as_str(), from)
    }

    async fn deliveries(
        &self,
        account: Allowed<'_, Account>,
        filter: &DeliveryFilter,
    ) -> Done<DeliveryPage> {
        self.store.lock().page(account.as_str(), filter, self.store.now())
    }

    async fn delivery(&self, id: Allowed<'_, DeliveryRow>) -> Done<DeliveryRow> {
        let tables = self.store.lock();
        let row = tables.delivery(id.as_str())?;
        let signer = tables.endpoint_of(row.endpoint).map(|endpoint| &endpoint.signer);
        // Requests are signed by the machine's clock, wherever the service's has been moved to.
        Ok(tables.shown_delivery(row, self.store.now())?.with_requests(signer, clock::now()))
    }

    async fn redeliver(&self, id: Allowed<'_, DeliveryRow>) -> Done<DeliveryRow> {
        self.again(id.as_str(), |tables, now| {
            let log = &tables.delivery(id.as_str())?.log;
            let made = log.iter().filter(|attempt| attempt.entry.manual).count();
            bounds::MANUAL_ATTEMPTS.check(id.by(), made)?;
            tables.redeliver(id.as_str(), now)
        })
    }

    async fn send_now(&self, id: Allowed<'_, DeliveryRow>) -> Done<DeliveryRow> {
        self.again(id.as_str(), |tables, now| tables.send_now(id.as_str(), now))
    }

    async fn count_missed(
        &self,
        endpoint: Allowed<'_, EndpointRow>,
        missed: &RecoveryFilter,
    ) -> Done<Missed> {
        self.store.lock().count_missed(endpoint.as_str(), missed)
    }

    async fn recover(
        &self,
        endpoint: Allowed<'_, EndpointRow>,
        missed: RecoveryFilter,
    ) -> Done<RecoveryRow> {
        let (mut tables, now) = self.store.write();
        tables.recover(endpoint.as_str(), missed, now)
    }

    async fn recover_all(
        &self,
        of: Among<'_, Account>,
        missed: RecoveryFilter,
        after: Option<&str>,
    ) -> Done<RecoveryPage> {
        let (mut tables, now) = self.store.write();
        tables.recover_all(of.one(), &missed, after, now)
    }

    async fn pause_recovery(
        &self,
        id: Allowed<'_, RecoveryRow>,
        paused: bool,
    ) -> Done<RecoveryRow> {
        self.store.lock().pause_recovery(id.as_str(), paused)
    }

    async fn recoveries(&self, page: PageOf<'_>) -> Done<List<RecoveryRow>> {
        let PageOf { account, after, limit } = page;
        let mut rows = self.store.lock().recoveries(account.as_str(), place(after, u64::MAX)?);
        rows.truncate(limit.saturating_add(1));
        Ok(PartRows::first(rows, limit, |(place, _)| place.to_string(), |(_, row)| Ok(row)))
    }

    async fn recovery(&self, id: Allowed<'_, RecoveryRow>) -> Done<RecoveryRow> {
        let (mut tables, now) = self.store.write();
        tables.recovery(id.as_str(), false, now)
    }

    async fn cancel_recovery(&self, id: Allowed<'_, RecoveryRow>) -> Done<RecoveryRow> {
        let (mut tables, now) = self.store.write();
        tables.recovery(id.as_str(), true, now)
    }

    async fn alerts(&self, page: PageOf<'_>) -> Done<PartRows<AlertRow>> {
        let PageOf { account, after, limit } = page;
        let (tables, below) = (self.store.lock(), place(after, u64::MAX)?);
        let rows = tables.alerts(account.as_str()).filter(|(number, _)| *number < below);
        let rows = rows.take(limit.saturating_add(1)).collect();
        Ok(PartRows::first(rows, limit, |(number, _)| number.to_string(), |(_, row)| row.clone()))
    }

    async fn alert(&self, id: Allowed<'_, AlertRow>) -> Done<AlertRow> {
        self.store.lock().one_alert(id.as_str())
    }

    async fn all_alerts(&self, _: Operator, of: Place<'_>, limit: usize) -> Done<AlertPage> {
        self.store.lock().all_alerts(of, limit)
    }

    async fn fleet(&self, _: Operator) -> Done<Fleet> {
        let (tables, now) = self.store.write();
        Ok(tables.fleet(self.load.row(), now))
    }

    async fn acknowledge(&self, id: Allowed<'_, AlertRow>, by: Option<&str>) -> Done<AlertRow> {
        let (mut tables, now) = self.store.write();
        tables.acknowledge(id.as_str(), by, now)
    }

    async fn login(&self, digest: [u8; 32]) -> Done<Option<LoginRow>> {
        Ok(lock(&self.logins).get(&digest).cloned())
    }

    async fn write_login(&self, _: By, digest: [u8; 32], row: LoginRow) -> Done<()> {
        let mut logins = lock(&self.logins);
        let now = clock::now();
        logins.retain(|_, login| login.expires_at > now);
        if logins.len() >= LOGINS && !logins.contains_key(&digest) {
            return Err(Refused::Conflict(format!(
                "there are {LOGINS} links and ended logins, which is the limit"
            )));
        }
        let ended = logins.get(&digest).is_some_and(|login| login.ended);
        logins.insert(digest, LoginRow { ended: row.ended || ended, ..row });
        Ok(())
    }

    async fn end_logins(&self, _: Operator, account: &str) -> Done<u64> {
        self.store.lock().account(account)?;
        let mut logins = lock(&self.logins);
        let of_it = logins.values_mut().filter(|login| {
            !login.ended && login.account.as_ref().is_some_and(|id| id.as_str() == account)
        });
        Ok(of_it.map(|login| login.ended = true).count().try_into().unwrap_or(u64::MAX))
    }

    async fn ready(&self) -> Done<Writes> {
        Ok(Writes::Stored)
    }

    async fn metrics(&self) -> Metrics {
        let (tables, now) = self.store.write();
        tables.metrics(self.load.row(), now)
    }
}
