//! Attempts are begun by owners, under a lease, and one after the other.
//!
//! Neither decides what is stored: versions do. An attempt that is begun without a lease, or while
//! the previous one is not stored, is a request that the receiver gets twice.

use std::collections::HashMap;

use call_assistant::Timestamp;

use super::record::{Change, Lease, Record};
use super::{Lost, error, is_lost};

/// Returns each attempt that was begun by whom and when it should not.
pub(super) fn check(record: &Record, lost: &[Lost]) -> Vec<String> {
    let mut wrong = Vec::new();
    // What the owners call themselves.
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut leases: HashMap<i64, Vec<(Timestamp, Option<&Lease>)>> = HashMap::new();
    // When each sender began attempts of a delivery, and when their results were stored.
    let mut attempts: HashMap<(i64, &str), Vec<(Timestamp, Timestamp)>> = HashMap::new();
    for noted in &record.rows {
        let Some(process) = noted.process.as_deref() else { continue };
        match &noted.change {
            Change::Shard { shard, lease, is_new } => {
                if let (Some(lease), true) = (lease, is_new) {
                    names.insert(process, &lease.owner);
                }
                leases.entry(*shard).or_default().push((noted.at, lease.as_ref()));
            }
            Change::Attempt { delivery, entry } => {
                let at = (entry.began_at, noted.at);
                attempts.entry((*delivery, process)).or_default().push(at);
            }
            _ => {}
        }
    }
    for ((delivery, process), attempts) in &mut attempts {
        let (_, shard) = record.places[delivery];
        let leases = leases.get(&shard).map_or([].as_slice(), Vec::as_slice);
        attempts.sort();
        let mut stored = Timestamp::MIN;
        for (began, noted) in attempts {
            let lease = leases.iter().rev().find(|(from, _)| from <= began);
            let is_owner = lease.and_then(|(_, lease)| *lease).is_some_and(|lease| {
                names.get(process) == Some(&lease.owner.as_str()) && *began <= lease.until
            });
            if !is_owner && !is_lost(lost, *began) {
                wrong.push(format!(
                    "delivery {delivery}: {process} sent it at {began} without a lease of shard {shard}"
                ));
            }
            if began.saturating_add(error(lost, *began)) < stored {
                wrong.push(format!(
                    "delivery {delivery}: {process} sent it at {began}, before the previous result \
                     was stored at {stored}"
                ));
            }
            stored = stored.max(*noted);
        }
    }
    wrong
}
