//! Leases of shards.

use crate::db::At;
use crate::db::rows::row;
use crate::db::statements::statements;

row! {
    /// A renewal of a sender's life.
    struct Renewed { live: i64, renewals: i64, timeline: String, at: At, others: Vec<String>, }
}

statements! { "owners"
    fn claim(sender: &str, most: i64, seconds: f64) -> Vec<(i16, i64, Option<String>)>;
    fn forget();
    fn leave(sender: &str);
    fn live(sender: &str, seconds: f64, host: Option<&str>, pid: i64) -> Renewed;
    fn release(sender: &str, shards: &[i16], epochs: &[i64]);
    fn renew(sender: &str, shards: &[i16], epochs: &[i64], seconds: f64) -> Vec<i16>;
}
