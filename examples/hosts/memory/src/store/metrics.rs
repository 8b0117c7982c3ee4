//! The store's metrics.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{DisabledReason, SenderGauges};

use super::Tables;
use host::store::{LoadRow, Metrics};

impl Tables {
    /// Returns the counters and the gauges, with what the sender has.
    pub fn metrics(&self, load: LoadRow, now: Timestamp) -> Metrics {
        let mut gauges = SenderGauges::default();
        gauges.oldest_due = load.behind;
        let one_more = |count: &mut u64| *count = count.saturating_add(1);
        for endpoint in &self.endpoints {
            let health = &endpoint.health;
            match health.disabled() {
                None if health.is_suspect() => one_more(&mut gauges.suspect),
                None => one_more(&mut gauges.active),
                Some(DisabledReason::Gone) => one_more(&mut gauges.gone),
                Some(DisabledReason::Failing) => one_more(&mut gauges.failing),
                Some(DisabledReason::Paused) => one_more(&mut gauges.paused),
                Some(_) => {}
            }
            let is_held = health.is_suspect() || health.disabled().is_some();
            for row in endpoint.pending.iter().filter_map(|number| self.deliveries.get(number)) {
                one_more(&mut gauges.pending);
                if is_held && row.next_at().is_some_and(|due| due <= now) {
                    one_more(&mut gauges.held);
                }
            }
        }
        let (load, gauges) = (Some(load), Some(gauges));
        Metrics { sender: self.tally, load, is_up: true, gauges, others: Vec::new() }
    }
}
