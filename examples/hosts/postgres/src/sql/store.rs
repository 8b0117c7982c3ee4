//! What the public API and the dashboard look up and change.

use call_assistant::id::{AccountId, CallId, CredentialId, EndpointId, EventId};
use call_assistant::rest::server::{KeyDigest, StoredKey};
use call_assistant::rest::{Mode, Scope};
use call_assistant::webhook::sender::{Delivery, EndpointHealth};
use host::store::levers::{ProcessRow, SenderRow};
use host::store::plan::Plan;
use host::store::{Account, FleetHour, Hour, JournalRow, LastHour, LoginRow, TroubledRow};
use tokio_postgres::Row;

use super::queue::StoredRecovery;
use crate::db::rows::{Body, Count, FromRow, Json, OfEndpoint, Parsed, row};
use crate::db::statements::statements;
use crate::db::{At, DbError, columns};

row! {
    for Account {
        id: Parsed<AccountId>,
        business_name: Option<String>,
        timezone: String,
        subscription_active: bool,
        closing: bool,
        calls: Count,
        ..plan: Plan,
    }
}

row! {
    /// An account of a list.
    struct ListedAccount { position: i32, id: String, ..read: Result<Account, DbError>, }
}

row! {
    /// A key, as it is stored.
    struct KeyColumns {
        id: Parsed<CredentialId>,
        account_id: Parsed<AccountId>,
        digest: Vec<u8>,
        livemode: bool,
        name: String,
        hint: String,
        scopes: Vec<String>,
        created_at: At,
        last_used_at: Option<At>,
        expires_at: Option<At>,
        revoked_at: Option<At>,
    }
}

impl FromRow for StoredKey {
    fn from_row(row: &Row, prefix: &str) -> Result<Self, DbError> {
        let key = KeyColumns::from_row(row, prefix)?;
        let digest = key.digest.as_slice().try_into();
        Ok(Self {
            id: key.id,
            account_id: key.account_id,
            digest: KeyDigest::from_bytes(digest.map_err(DbError::row)?),
            mode: if key.livemode { Mode::Live } else { Mode::Test },
            name: key.name,
            hint: key.hint,
            scopes: key.scopes.iter().map(|scope| Scope::from(scope.as_str())).collect(),
            created_at: key.created_at,
            last_used_at: key.last_used_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
        })
    }

    #[cfg(test)]
    fn columns(prefix: &str) -> Vec<crate::db::rows::Column> {
        KeyColumns::columns(prefix)
    }
}

row! {
    /// How many keys of an account work, and how many were made in a while.
    struct KeyCounts { working: i64, made: i64, }
}

row! {
    /// A key of a list.
    struct ListedKey { position: i32, id: String, ..read: Result<StoredKey, DbError>, }
}

row! {
    /// A key that is revoked, and when it was before.
    struct RevokedKey { revoked_before: Option<At>, ..key: StoredKey, }
}

row! {
    /// The account of a key.
    struct Owner {
        account_id: Parsed<AccountId>,
        business_name: Option<String>,
        timezone: String,
        subscription_active: bool,
        closing: bool,
        ..plan: Plan,
    }
}

row! {
    /// A key and its account, by the digest of its secret.
    struct FoundKey { digest: Vec<u8>, ..key: Result<StoredKey, DbError>, ..owner: Result<Owner, DbError>, }
}

columns! {
    /// Pages that are asked for.
    Pages of Page {
        account_id: String,
        live: bool,
        since: At,
        until: At,
        at: At,
        id: String,
        rows: i64,
    }
}

columns! {
    /// Calls that are asked for by id.
    Ids of Id {
        account_id: String,
        live: bool,
        id: String,
    }
}

row! {
    /// A call, and whose question it answers.
    struct FoundCall { nth: i64, ..call: StoredCall, }
}

row! {
    /// A call, as it is stored.
    struct StoredCall { account_id: String, livemode: bool, body: String, }
}

row! {
    /// How far some deliveries of an endpoint reach.
    struct Reached { number: i32, id: i64, event_created_at: At, is_full: bool, oldest: At, newest: At, }
}

row! {
    /// A process as it told, and what it has a lease of.
    struct LivingProcess { told: Json<ProcessRow>, lease_ms: Option<i64>, shards: Vec<i16>, }
}

row! {
    /// A call of a page, or the place to which the page was walked.
    struct PagedCall {
        nth: i64,
        account_id: String,
        livemode: bool,
        body: Option<String>,
        started_at: Option<At>,
        id: Option<Parsed<CallId>>,
    }
}

row! {
    /// A call of a list.
    struct ListedCall { started_at: At, id: String, ..call: StoredCall, }
}

row! {
    /// An alert, with its endpoint.
    struct StoredAlert {
        id: i64,
        at: At,
        alert: String,
        missed: Option<Count>,
        number: Option<i64>,
        acknowledged_by: Option<String>,
        acknowledged_at: Option<At>,
        owner_acknowledged_at: Option<At>,
        endpoint_id: Parsed<EndpointId>,
        url: String,
        account_id: Parsed<AccountId>,
    }
}

row! {
    /// A delivery of a list, with its event. A long body is left out.
    struct ListedDelivery { id: i64, endpoint: i32, ..read: Result<StoredDelivery, DbError>, }
}

row! {
    /// A delivery, with its event.
    struct StoredDelivery {
        account_id: Parsed<AccountId>,
        event_id: Parsed<EventId>,
        event_type: String,
        body: Option<Body>,
        ..state: Delivery,
    }
}

row! {
    /// A delivery, with its event and its endpoint.
    struct OneDelivery {
        endpoint_id: Parsed<EndpointId>,
        url: String,
        secrets: Vec<u8>,
        ..delivery: StoredDelivery,
        ..health: OfEndpoint,
    }
}

row! {
    /// A delivery to redeliver, with its endpoint.
    struct ToRedeliver { erased: bool, ..delivery: Delivery, ..health: OfEndpoint, ..plan: Plan, }
}

row! {
    /// An entry of the log.
    struct StoredAttempt {
        delivery: i64,
        number: i16,
        manual: bool,
        began_at: At,
        took_ms: Count,
        outcome: String,
        late: bool,
        status: String,
        next_at: Option<At>,
        response: Option<String>,
        response_cut: bool,
        headers: Option<String>,
        headers_cut: bool,
        reason: Option<String>,
        signed_t: Option<i64>,
        signed_by: Option<Vec<u8>>,
    }
}

row! {
    /// An endpoint, with its sealed secrets.
    struct StoredEndpoint {
        number: i32,
        shard: i16,
        id: Parsed<EndpointId>,
        account_id: Parsed<AccountId>,
        created_at: At,
        url: String,
        description: Option<String>,
        secrets: Vec<u8>,
        ..health: EndpointHealth,
    }
}

row! {
    /// An endpoint of a list.
    struct ListedEndpoint {
        number: i32,
        shard: i16,
        id: String,
        url: String,
        ..health: Result<EndpointHealth, DbError>,
        ..read: Result<StoredEndpoint, DbError>,
    }
}

row! {
    /// An endpoint that is locked, with its account's plan.
    struct LockedEndpoint { ..endpoint: StoredEndpoint, ..plan: Plan, }
}

row! {
    for LastHour {
        attempts: Count, more: bool, succeeded: Count, p50_ms: Option<Count>, p99_ms: Option<Count>,
    }
}

row! {
    /// How an endpoint has answered in the last hour.
    struct HourOf { number: i32, ..hour: LastHour, }
}

row! {
    for Hour { delivered: Count, failing: Count, missed: Count, waiting: Count, }
}

row! {
    /// How the events of an hour stand at an endpoint.
    struct Standing { number: i32, oldest: At, ..hour: Hour, }
}

row! {
    for FleetHour { at: At, pending: Count, late_ms: Option<Count>, }
}

row! {
    for TroubledRow {
        account_id: Parsed<AccountId>,
        business_name: Option<String>,
        endpoint_id: Parsed<EndpointId>,
        url: String,
        reason: Option<String>,
        since: At,
        outcome: Option<String>,
        waiting: Count,
        missed: Count,
        acknowledged_by: Option<String>,
        acknowledged_at: Option<At>,
    }
}

row! {
    for JournalRow {
        position: String,
        at: At,
        by: String,
        action: String,
        account_id: Option<String>,
        target: String,
        before: Option<Json<serde_json::Value>>,
        after: Option<Json<serde_json::Value>>,
    }
}

row! {
    /// A lever, as it is stored.
    struct StoredLever {
        id: i64,
        account_id: Option<String>,
        endpoint_id: Option<String>,
        per_second: i32,
        set_by: String,
        set_at: At,
    }
}

row! {
    /// A lever that is set, with the numbers of its account and its endpoint.
    struct SetLever { account: Option<i32>, endpoint: Option<i32>, ..lever: StoredLever, }
}

row! {
    for SenderRow { id: String, host: Option<String>, pid: Option<i64>, lease_ms: Count, shards: Vec<i16>, }
}

row! {
    /// A login, by the digest of its secret.
    struct FoundLogin { digest: Vec<u8>, ..read: Result<LoginRow, DbError>, }
}

row! {
    for LoginRow { account: Option<Parsed<AccountId>>, expires_at: At, ended: bool, }
}

row! {
    /// A recovery of a list.
    struct ListedRecovery { id: i64, place: i64, ..read: Result<StoredRecovery, DbError>, }
}

row! {
    /// An endpoint that may have missed something.
    struct ToRecover {
        number: i32,
        id: String,
        shard: i16,
        account_id: String,
        ..health: Result<EndpointHealth, DbError>,
        ..plan: Result<Plan, DbError>,
    }
}

statements! { "store"
    fn accounts_change(
        id: &str, plan: Option<&str>, subscription_active: Option<bool>, closing: Option<bool>,
        timezone: Option<&str>,
    );
    fn accounts_count_keys(account: &str, now: At, since: At) -> KeyCounts;
    fn accounts_insert(
        id: &str, business_name: Option<&str>, timezone: &str, plan: &str, subscription_active: bool,
        closing: bool,
    );
    fn accounts_insert_key(
        id: &str, account: &str, digest: &[u8], live: bool, name: &str, hint: &str, scopes: &[&str],
        created_at: At, last_used_at: Option<At>, expires_at: Option<At>, revoked_at: Option<At>,
    );
    fn accounts_key(id: &str) -> Option<StoredKey>;
    fn accounts_keys(account: &str, after: i32, most: i64) -> Vec<ListedKey>;
    fn accounts_lock(id: &str);
    fn accounts_newest_keys(account: &str, most: i64) -> Vec<ListedKey>;
    fn accounts_one(id: &str) -> Option<Account>;
    fn accounts_page(after: i32, most: i64) -> Vec<ListedAccount>;
    fn accounts_revoke_key(id: &str, at: At) -> Option<RevokedKey>;
    fn accounts_search(after: i32, most: i64, id: &str, words: &str) -> Vec<ListedAccount>;
    fn accounts_timezone(name: &str) -> bool;
    fn alerts_acknowledge(id: i64, by: Option<&str>, at: At);
    fn alerts_after(number: i64, most: i64) -> Vec<StoredAlert>;
    fn alerts_last() -> i64;
    fn alerts_latest(account: &str, below: i64, limit: i64) -> Vec<StoredAlert>;
    fn alerts_before(id: i64, most: i64) -> Vec<StoredAlert>;
    fn alerts_new() -> bool;
    fn alerts_number();
    fn alerts_one(id: i64) -> Option<StoredAlert>;
    fn alerts_turn();
    fn api_admit(credentials: &[&str], quotas: &[&str], per_minute: &[i32], requests: &[i32]) -> Vec<(i32, Option<i64>)>;
    fn api_call(ids: &Ids) -> Vec<FoundCall>;
    fn api_keys(digests: &[&[u8]]) -> Vec<FoundKey>;
    fn api_note_use(ids: &[String], at: At);
    fn api_page(pages: &Pages) -> Vec<PagedCall>;
    fn calls_insert(account: &str, live: bool, ids: &[&str], started: &[At], created: &[At], bodies: &[String]);
    fn calls_latest(account: &str, at: At, id: &str, limit: i64) -> Vec<ListedCall>;
    fn deliveries_attempts(ids: &[i64], first: At, last: At) -> Vec<StoredAttempt>;
    fn deliveries_one(endpoint: i32, id: i64) -> Option<OneDelivery>;
    fn deliveries_page(
        shards: &[i16], endpoints: &[i32], statuses: Option<&[&str]>, event_type: Option<&str>,
        event: Option<&str>, from: At, until: At, below: i64, most: i64, longest: i32, id: Option<i64>,
        failing: bool, from_id: i64,
    ) -> Vec<ListedDelivery>;
    fn deliveries_reach(endpoints: &[i32], below: &[i64], count: i64, from: At, until: At) -> Vec<Reached>;
    fn deliveries_redeliver_ended(endpoint: i32, id: i64) -> Option<ToRedeliver>;
    fn deliveries_redeliver_pending(endpoint: i32, id: i64) -> Option<ToRedeliver>;
    fn deliveries_send_now(id: i64, at: At);
    fn endpoints_all(account: &str, deleted: bool, after: i32, limit: i64) -> Vec<ListedEndpoint>;
    fn endpoints_change(id: &str) -> Option<LockedEndpoint>;
    fn endpoints_count(account: &str) -> i64;
    fn endpoints_day(
        shards: &[i16], endpoints: &[i32], from: At, midnight: At, most: i64, until: At,
    ) -> Vec<Standing>;
    fn endpoints_deleted(account: &str, since: At) -> i64;
    fn endpoints_edit(
        number: i32, is_described: bool, description: Option<&str>, url: Option<&str>,
        allow_loopback: Option<bool>,
    );
    fn endpoints_insert(
        id: &str, account: &str, shard: i16, created_at: At, url: &str, allow_loopback: bool, secrets: &[u8],
        disabled: Option<&str>, since: At, failures: i16, generation: i32, version: i32,
        description: Option<&str>,
    );
    fn endpoints_last_hour(shards: &[i16], endpoints: &[i32], since: At) -> Vec<HourOf>;
    fn endpoints_one(id: &str) -> Option<StoredEndpoint>;
    fn endpoints_secrets(number: i32, secrets: &[u8]);
    fn fleet_hours() -> Vec<FleetHour>;
    fn fleet_troubled(most: i64, count: i64) -> Vec<TroubledRow>;
    fn journal_after(writer: &str, id: i64, most: i64) -> Vec<JournalRow>;
    fn journal_before(writer: &str, id: i64, most: i64) -> Vec<JournalRow>;
    fn journal_insert(
        by: &str, action: &str, account: Option<&str>, target: &str, before: Option<String>,
        after: Option<String>,
    );
    fn journal_reached(writer: &str, id: i64) -> bool;
    fn levers(of: Option<&str>) -> Vec<SetLever>;
    fn levers_forget(account: &str, endpoint: Option<&str>) -> Vec<StoredLever>;
    fn levers_pending(account: &str, endpoint: i32, after: i64, event_type: &str) -> Vec<(i32, i64, bool)>;
    fn levers_processes() -> Vec<LivingProcess>;
    fn levers_senders() -> Vec<SenderRow>;
    fn levers_set(
        account: Option<&str>, endpoint: Option<&str>, per_second: i32, by: &str, at: At,
    ) -> Option<StoredLever>;
    fn levers_undo(id: i64) -> Option<StoredLever>;
    fn logins_end(account: &str);
    fn logins_of(digests: &[&[u8]]) -> Vec<FoundLogin>;
    fn logins_write(digest: &[u8], account: Option<&str>, expires_at: At, ended: bool);
    fn recoveries_endpoints(account: Option<&str>, after: i32, most: i64) -> Vec<ToRecover>;
    fn recoveries_forget(endpoint: i32);
    fn recoveries_insert(
        endpoint: i32, shard: i16, recovery: &str, version: i32, at: At, counted_to: Option<i64>,
    ) -> Option<i64>;
    fn recoveries_one(id: i64) -> Option<StoredRecovery>;
    fn recoveries_page(account: &str, below: i64, limit: i64) -> Vec<ListedRecovery>;
    fn recoveries_pause(id: i64, paused: bool);
}
