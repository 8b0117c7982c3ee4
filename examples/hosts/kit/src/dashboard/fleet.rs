//! All accounts on one screen.

use serde_json::json;

use super::{Asked, Dashboard, show};
use crate::http::answer::{Answered, ok};
use crate::store::Store;
use crate::store::scope::Operator;

impl<S: Store, X> Dashboard<S, X> {
    /// Returns the endpoints that need somebody, what is pending and late, and what operators have set.
    pub(super) async fn fleet(&self, by: Operator, asked: &Asked<'_>) -> Answered {
        let fleet = self.store.fleet(by).await?;
        let levers = self.store.levers(by).await?;
        let late = levers.processes.iter().map(|process| process.late_seconds);
        let gauges = fleet.gauges.map(|gauges| {
            json!({
                "pending": gauges.pending,
                "held": gauges.held,
                "late_seconds": late.fold(gauges.oldest_due.as_secs_f64(), f64::max),
                "active": gauges.active,
                "suspect": gauges.suspect,
                "gone": gauges.gone,
                "failing": gauges.failing,
                "paused": gauges.paused,
            })
        });
        Ok(ok(&json!({
            "troubled": fleet.troubled.iter().map(show::value).collect::<Vec<_>>(),
            "more": fleet.more,
            "gauges": gauges,
            "hours": fleet.hours,
            "levers": levers.levers,
            "processes": levers.processes,
            "now": asked.now,
        })))
    }
}
