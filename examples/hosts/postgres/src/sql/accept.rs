//! Accepting events, by the clock of the database.

use call_assistant::webhook::sender::EndpointHealth;

use crate::db::rows::row;
use crate::db::statements::statements;
use crate::db::{At, columns};

row! {
    /// The database's clock, and the start of the transaction.
    struct Now { at: At, started_at: At, }
}

row! {
    /// An endpoint that an event goes to.
    struct Receiver { number: i32, shard: i16, ..health: EndpointHealth, }
}

columns! {
    /// Deliveries to insert.
    NewDeliveries of NewDelivery {
        shard: i16,
        endpoint: i32,
        status: &'static str,
        at: At,
        attempts: i16,
        manual: bool,
        generation: i32,
        version: i32,
    }
}

statements! { "accept"
    fn now() -> Now;
    fn wait_for_standby();
    fn endpoints(account: &str, plans: &[&str], only: Option<i32>) -> Vec<Receiver>;
    fn event(
        account: &str, id: &str, created_at: At, event_type: &str, body: &[u8], trace: Option<&str>,
    );
    fn pending(account: &str, event: &str, created_at: At, rows: &NewDeliveries) -> Vec<(i32, i64)>;
    fn skipped(account: &str, event: &str, created_at: At, rows: &NewDeliveries) -> Vec<(i32, i64)>;
}
