//! A record: rows as the library's values.

use std::collections::HashMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, EndpointHealth, Outcome};

/// All that was noted, in its order.
#[derive(Debug)]
pub struct Record {
    pub rows: Vec<Noted>,
    /// The endpoint and the shard of each delivery.
    pub places: HashMap<i64, (i64, i64)>,
    /// The factor of the waits of the schedule.
    pub time_scale: f64,
}

/// One change of one row.
#[derive(Clone, Debug)]
pub struct Noted {
    pub tx: u64,
    pub snapshot: Snapshot,
    pub at: Timestamp,
    /// The sender that did it, if one did.
    pub process: Option<String>,
    pub change: Change,
}

/// A change. The delivery and the endpoint are numbered 1, whatever their rows' numbers are.
#[derive(Clone, Debug)]
pub enum Change {
    Delivery {
        id: i64,
        before: Option<Delivery>,
        after: Option<Delivery>,
    },
    Endpoint {
        number: i64,
        before: Option<EndpointHealth>,
        after: Option<EndpointHealth>,
    },
    Attempt {
        delivery: i64,
        entry: Entry,
    },
    Shard {
        shard: i64,
        lease: Option<Lease>,
        /// Whether it was taken, and not renewed.
        is_new: bool,
    },
    /// Nothing: somebody looked.
    Look,
}

/// Who sends for a shard.
#[derive(Clone, Debug)]
pub struct Lease {
    pub owner: String,
    pub until: Timestamp,
}

/// A row of the log.
#[derive(Clone, Debug)]
pub struct Entry {
    pub number: u8,
    pub manual: bool,
    pub outcome: Outcome,
    pub late: bool,
    /// By the sender's clock.
    pub began_at: Timestamp,
    pub took: Duration,
}

/// Which transactions could be seen: those before `xmin`, and those before `xmax` that did not run.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub xmin: u64,
    pub xmax: u64,
    pub running: Vec<u64>,
}

impl Record {
    /// Returns an instant by which everybody saw what the transaction of a row did: when a later row was
    /// noted by somebody who did.
    pub(super) fn seen_by(&self, position: usize) -> Option<Timestamp> {
        let tx = self.rows[position].tx;
        let sees = |later: &&Noted| later.tx != tx && later.snapshot.sees(tx);
        self.rows[position..].iter().find(sees).map(|later| later.at)
    }
}

impl Snapshot {
    fn sees(&self, tx: u64) -> bool {
        tx < self.xmin || (tx < self.xmax && !self.running.contains(&tx))
    }
}
