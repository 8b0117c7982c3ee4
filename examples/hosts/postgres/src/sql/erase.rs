//! Erasing an account, or what an account has of one caller.

use crate::db::At;
use crate::db::rows::{Count, row};
use crate::db::statements::statements;

row! {
    /// How much went with an account's row.
    struct WithAccount { accounts: Count, keys: Count, endpoints: Count, alerts: Count, recoveries: Count, }
}

row! {
    /// A delivery that is locked, and whose it is.
    struct Held { id: i64, account_id: String, event_created_at: At, }
}

row! {
    /// An event that was not erased.
    struct Event { id: String, created_at: At, body: Vec<u8>, }
}

row! {
    /// An answer that was kept, if the delivery has one.
    struct Kept {
        id: i64,
        event_created_at: At,
        erased: bool,
        began_at: Option<At>,
        number: Option<i16>,
        response: String,
    }
}

statements! { "erase"
    fn journal(account: &str);
    fn account(id: &str) -> WithAccount;
    fn account_calls(account: &str, most: i64);
    fn account_events(account: &str, most: i64);
    fn account_known(account: &str) -> (bool, bool);
    fn account_left(account: &str, endpoints: &[i32]) -> bool;
    fn account_mark(account: &str);
    fn attempts_remove(deliveries: &[i64], first: At, last: At);
    fn calls_read(account: &str, after: &str, most: i64) -> Vec<(String, String)>;
    fn calls_write(account: &str, ids: &[&str], old: &[&str], new: &[String]);
    fn ended_lock(endpoint: i32, after: i64, most: i64) -> Vec<Held>;
    fn ended_remove(endpoint: i32, ids: &[i64], first: At, last: At);
    fn endpoints(after: i32, most: i64) -> Vec<(i32, String)>;
    fn events_read(account: &str, after: &str, at: At, most: i64) -> Vec<Event>;
    fn events_write(account: &str, ids: &[&str], first: At, last: At);
    fn log_read(endpoint: i32, after: i64, most: i64) -> Vec<Kept>;
    fn log_write(deliveries: &[i64], created: &[At], began: &[At], numbers: &[i16]);
    fn may_be_in_flight(seconds: f64) -> bool;
    fn pending_lock(endpoint: i32, after: i64, most: i64) -> Vec<Held>;
    fn pending_read(endpoint: i32, after: i64, most: i64) -> Vec<(i64, bool)>;
    fn pending_remove(ids: &[i64]);
}
