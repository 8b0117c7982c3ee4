//! The store's metrics.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{DeliveryStatus, DisabledReason, Gauges};

use super::Tables;
use host::rows::Metrics;

impl Tables {
    /// Returns the counters and the gauges.
    pub fn metrics(&self, now: Timestamp) -> Metrics {
        let mut gauges = Gauges::default();
        let one_more = |count: &mut u64| *count = count.saturating_add(1);
        for endpoint in &self.endpoints {
            match endpoint.health.disabled() {
                None if endpoint.health.is_suspect() => one_more(&mut gauges.suspect),
                None => one_more(&mut gauges.active),
                Some(DisabledReason::Gone) => one_more(&mut gauges.gone),
                Some(DisabledReason::Failing) => one_more(&mut gauges.failing),
                Some(DisabledReason::Paused) => one_more(&mut gauges.paused),
                Some(_) => {}
            }
            for row in endpoint.pending.iter().filter_map(|number| self.deliveries.get(number)) {
                match row.state.status() {
                    DeliveryStatus::Sending => one_more(&mut gauges.sending),
                    _ => one_more(&mut gauges.waiting),
                }
                let late = row.next_at().map_or(Duration::ZERO, |due| now.since(due));
                gauges.oldest_due = gauges.oldest_due.max(late);
            }
        }
        let (went_back, oldest_day, clock, writes) = (None, None, None, None);
        Metrics { sender: self.tally, gauges, went_back, oldest_day, clock, writes }
    }
}
