//! Deliveries that are pending or have ended, the health of their endpoints, recoveries, and alerts.

use call_assistant::id::{AccountId, EndpointId};
use call_assistant::webhook::sender::{Delivery, EndpointHealth, Recovery};
use host::store::plan::Plan;

use crate::db::rows::{Count, Json, Parsed, row};
use crate::db::statements::statements;
use crate::db::{At, DbError, columns};

row! {
    /// A delivery, or the reason why this version cannot read it.
    struct Listed { id: i64, ..read: Result<Delivery, DbError>, }
}

row! {
    /// How an endpoint stands, or the reason why this version cannot read that.
    struct Health { number: i32, ..read: Result<EndpointHealth, DbError>, }
}

row! {
    /// An endpoint that is disabled, whose owner may be reminded.
    struct Disabled { number: i32, id: String, account_id: String, shard: i16, ..read: Result<EndpointHealth, DbError>, }
}

row! {
    /// A recovery, and how far it has come.
    struct StoredRecovery {
        id: i64,
        account_id: Parsed<AccountId>,
        endpoint_id: Parsed<EndpointId>,
        recovery: Json<Recovery<u64>>,
        ended_at: Option<At>,
        paused: bool,
        counted: Option<Count>,
        counted_to: Option<i64>,
    }
}

row! {
    /// A recovery that is locked, with its endpoint's health and its account's plan.
    struct LockedRecovery {
        shard: i16,
        endpoint: i32,
        searched_to: Option<i64>,
        ..stored: StoredRecovery,
        ..health: EndpointHealth,
        ..plan: Plan,
    }
}

columns! {
    /// Deliveries to write.
    Changed of ChangedDelivery {
        endpoint: i32,
        id: i64,
        event_created_at: At,
        if_version: Option<i32>,
        status: &'static str,
        at: At,
        attempts: i16,
        manual: bool,
        generation: i32,
        version: i32,
    }
}

columns! {
    /// Endpoints to write.
    ChangedEndpoints of ChangedEndpoint {
        number: i32,
        if_version: Option<i32>,
        disabled: Option<&'static str>,
        since: At,
        failures: i16,
        generation: i32,
        version: i32,
        first_failures: i16,
        first_failed_at: Option<At>,
        reminders: i16,
    }
}

statements! { "queue"
    fn again(ids: &[i64]);
    fn amend(rows: &Changed);
    fn endpoints(numbers: &[i32]) -> Vec<Health>;
    fn give_up(ids: &[i64], at: At);
    fn lock_ended(endpoints: &[i32], ids: &[i64], created: &[At]) -> Vec<Result<Delivery, DbError>>;
    fn lock_endpoints(numbers: &[i32]) -> Vec<Health>;
    fn lock_pending(ids: &[i64]) -> Vec<Result<Delivery, DbError>>;
    fn park(endpoint: i32, after: i64) -> Vec<Listed>;
    fn retire(rows: &Changed);
    fn revive(rows: &Changed);
    fn wait(rows: &Changed);
    fn write_endpoints(rows: &ChangedEndpoints);
    fn missed_count(
        shard: i16, endpoint: i32, from: At, until: At, statuses: &[&str], ended_generation: Option<i32>,
        failed_from: At, active_generation: Option<i32>, types: &[&str], after: i64, to: i64,
    ) -> Vec<(String, i64)>;
    fn missed_ended(
        endpoint: i32, from: At, until: At, statuses: &[&str], ended_generation: Option<i32>, failed_from: At,
        types: &[&str], after: i64, to: i64, most: i64,
    ) -> Vec<Delivery>;
    fn missed_newest(endpoint: i32, from: At) -> Vec<Result<Delivery, DbError>>;
    fn missed_pending(
        shard: i16, endpoint: i32, from: At, until: At, active_generation: Option<i32>, types: &[&str],
        after: i64, to: i64, most: i64,
    ) -> Vec<Delivery>;
    fn missed_window(endpoint: i32, from: At, until: At, after: i64, most: i64) -> Option<i64>;
    fn insert_alerts(endpoints: &[i32], versions: &[i32], at: At, alerts: &[String]);
    fn write_alert_missed(endpoint: i32, version: i32, missed: i64);
    fn lock_disabled(shards: &[i16], first: Option<At>, second: Option<At>, after: i32) -> Vec<Disabled>;
    fn settled(transaction: &str) -> bool;
    fn transaction() -> String;
    fn lock_recovery(id: i64) -> Option<LockedRecovery>;
    fn count_redeliveries(shard: i16, endpoint: i32) -> i64;
    fn write_progress(id: i64, counted: i64, counted_to: Option<i64>, searched_to: Option<i64>);
    fn write_recovery(id: i64, if_version: i32, recovery: &str, version: i32, ended_at: Option<At>);
}
