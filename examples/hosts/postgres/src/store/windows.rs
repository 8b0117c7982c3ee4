//! Rate windows, counted together, and refusals that still hold.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use call_assistant::rest::server::Identified;
use tokio::time::Instant;

use crate::db::{Database, DbError};
use crate::sql::store as sql;
use host::store::Done;

/// The window that a request is counted in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Window {
    credential_id: String,
    quota: &'static str,
    per_minute: u16,
}

impl Window {
    pub(super) fn of(request: &Identified) -> Self {
        let quota = request.quota();
        Self {
            credential_id: request.credential_id().as_str().to_owned(),
            quota: quota.name(),
            per_minute: quota.per_minute(),
        }
    }
}

/// Counts a request in each of these windows. Some is a refusal, with the wait.
pub(super) async fn admit(
    database: Database,
    requests: Vec<Window>,
) -> Done<Vec<Done<Option<Duration>>>> {
    // Sorted, so that all processes lock windows in one order.
    let mut windows: BTreeMap<&Window, i32> = BTreeMap::new();
    for window in &requests {
        let count = windows.entry(window).or_default();
        *count = count.saturating_add(1);
    }
    let ids: Vec<&str> = windows.keys().map(|window| window.credential_id.as_str()).collect();
    let quotas: Vec<&str> = windows.keys().map(|window| window.quota).collect();
    let limits: Vec<i32> = windows.keys().map(|window| window.per_minute.into()).collect();
    let counts: Vec<i32> = windows.values().copied().collect();
    let decided = database
        .write(async |client| sql::api_admit(client, &ids, &quotas, &limits, &counts).await);
    let mut left: BTreeMap<&Window, (i32, Option<i64>)> =
        windows.into_keys().zip(decided.await?).collect();
    let decide = |window| {
        let (admitted, wait) =
            left.get_mut(window).ok_or_else(|| DbError::row("a window was not counted"))?;
        *admitted = admitted.saturating_sub(1);
        if *admitted >= 0 {
            return Ok(None);
        }
        let micros = wait.ok_or_else(|| DbError::row("a refusal has no wait"))?;
        Ok(Some(Duration::from_micros(micros.max(0).unsigned_abs())))
    };
    Ok(requests.iter().map(decide).collect())
}

/// Refusals that still hold, so that a credential that asks too often costs the database nothing. They end by what
/// measures spans: a clock that is set back keeps none.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<HashMap<Window, Instant>>);

/// The most credentials that are refused at the same time: 10,000.
const REFUSALS: usize = 10_000;

impl Refusals {
    /// Returns how long a window's refusal still holds.
    pub(super) fn wait(&self, window: &Window) -> Option<Duration> {
        let refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.get(window)?.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
    }

    /// Notes that a window refuses for so long.
    pub(super) fn note(&self, window: Window, wait: Duration) {
        let now = Instant::now();
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.len() >= REFUSALS {
            refusals.retain(|_, until| *until > now);
        }
        if let Some(until) = now.checked_add(wait).filter(|_| refusals.len() < REFUSALS) {
            refusals.insert(window, until);
        }
    }
}
