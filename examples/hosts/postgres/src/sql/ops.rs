//! What operators and monitoring look at, and the keys that seal.

use crate::db::rows::{Count, row};
use crate::db::statements::statements;

row! {
    /// What the server says of itself.
    struct Server {
        version: i32,
        max_connections: i64,
        connections: i64,
        max_wal_mb: i64,
        checkpoint_seconds: i64,
        naptime_seconds: i64,
        survives_a_crash: bool,
        loses_commits: bool,
        standby_names: String,
        standbys: i64,
        archive_mode: String,
        archived_seconds_ago: Option<i64>,
        archiving_fails: bool,
        days_ahead: i64,
    }
}

row! {
    /// What was counted last, and how long ago.
    struct Gauges {
        age: f64,
        pending: Count,
        held: Count,
        oldest_due_ms: Count,
        late_accounts: Count,
        active: Count,
        suspect: Count,
        gone: Count,
        failing: Count,
        paused: Count,
    }
}

row! {
    /// Shards that nobody owns, recoveries that have not ended, what operators have set, and whether a later version has
    /// migrated.
    struct State {
        unowned: i64,
        recoveries: i64,
        paused: i64,
        throttled: i64,
        oldest_lever: i64,
        has_later: bool,
    }
}

row! {
    /// Sealed secrets of an endpoint.
    struct Sealed { number: i32, id: String, secrets: Vec<u8>, }
}

row! {
    /// Sealed secrets of an endpoint, which may be deleted.
    struct Locked { is_deleted: bool, ..sealed: Sealed, }
}

statements! { "ops"
    fn doctor_server() -> Server;
    fn monitoring_count();
    fn monitoring_gauges() -> Option<Gauges>;
    fn monitoring_hour();
    fn monitoring_roles(roles: &[&str]) -> Vec<String>;
    fn monitoring_secrets() -> Vec<(Vec<u8>, i64)>;
    fn monitoring_state(latest: i32) -> State;
    fn monitoring_turn(seconds: f64, times: f64) -> Option<bool>;
    fn monitoring_unreadable(sender: &str, sealed_by: &[Vec<u8>]) -> (i64, f64);
    fn monitoring_whole_tables() = batch;
    fn processes_tell(id: &str, told: &str);
    fn ring_add(number: i16, check_value: &[u8]);
    fn ring_all() -> Vec<(i16, Vec<u8>)>;
    fn ring_begin() = batch;
    fn ring_free(but: i16);
    fn ring_wait() = batch;
    fn rotate_look(after: i32) -> Vec<Sealed>;
    fn rotate_read(after: i32) -> Vec<Locked>;
}
