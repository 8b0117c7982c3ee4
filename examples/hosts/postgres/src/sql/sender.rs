//! What a sender reads to begin attempts, the log of attempts, and days.

use call_assistant::webhook::sender::{Delivery, EndpointHealth};

use crate::db::rows::{Body, OfEndpoint, Parsed, row};
use crate::db::statements::statements;
use crate::db::{At, DbError, columns};

row! {
    /// A delivery to begin, with its event; without a body if that was erased.
    struct ToSend {
        id: i64,
        endpoint: i32,
        body: Option<Body>,
        traceparent: Option<String>,
        ..delivery: Result<Delivery, DbError>,
    }
}

row! {
    /// An endpoint to send to.
    struct Receiver {
        number: i32,
        id: String,
        account_id: String,
        url: String,
        allow_loopback: bool,
        secrets: Vec<u8>,
        ..health: Result<EndpointHealth, DbError>,
    }
}

columns! {
    /// Entries of the log.
    Entries of Entry {
        delivery: i64,
        event_created_at: At,
        number: i16,
        manual: bool,
        began_at: At,
        took_ms: i64,
        outcome: String,
        late: bool,
        status: &'static str,
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
    /// The snapshot of a look, or a row that is pending: its place in the queue of its shard, and its account.
    struct Polled {
        snapshot: Option<String>,
        queued_by: Option<Parsed<u64>>,
        id: Option<i64>,
        shard: Option<i16>,
        endpoint: Option<i32>,
        account: Option<i32>,
        at: Option<At>,
        ..delivery: Result<Delivery, DbError>,
    }
}

row! {
    /// A delivery that should have ended long ago, with all that it takes to end it.
    struct Overdue {
        id: i64,
        endpoint: i32,
        account_id: String,
        endpoint_number: Option<i32>,
        endpoint_id: Option<String>,
        endpoint_version: Option<i32>,
        secrets: Option<Vec<u8>>,
        body: Option<Body>,
        ..delivery: Result<Delivery, DbError>,
        ..health: Result<OfEndpoint, DbError>,
    }
}

statements! { "sender"
    fn deliveries(ids: &[i64], first: At, last: At) -> Vec<ToSend>;
    fn endpoints(numbers: &[i32]) -> Vec<Receiver>;
    fn log(rows: &Entries, may_be_there: bool, first: At, last: At);
    fn poll(shards: &[i16], transactions: &[String], ids: &[i64], since: Option<&str>, most: i64) -> Vec<Polled>;
    fn days_add() = batch;
    fn days_drop(day: &str) -> bool;
    fn days_oldest(now: At) -> (Option<i64>,);
    fn days_overdue(before: At, after: i64) -> Vec<Overdue>;
    fn days_to_drop(before: At) -> Vec<String>;
    fn days_wait_briefly() = batch;
    fn drop_alerts(before: At, most: i64);
    fn forget_endpoints(after: i32, most: i64, before: At) -> (Option<i32>,);
    fn running_recoveries(shards: &[i16], before: At) -> Vec<i64>;
}
