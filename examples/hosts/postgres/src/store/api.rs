//! What the public API looks up: two or three round trips a request, each shared by the requests that wait at the
//! same time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::rest::server::{
    Admitted, CallQuery, CallRow, CallsQuery, Identified, Received, StoredKey,
};
use tokio::time::Instant;

use super::{Postgres, accounts, calls};
use crate::db::{At, Database, DbError};
use crate::sql::store::{self as sql, FoundKey, Id, Page, PagedCall, StoredCall};
use host::lock;
use host::store::together::{Question, Together};
use host::store::{ApiStore, CallPage, Done, Refused, Rejected, Standing};

/// What the requests of a process share.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    keys: Together<[u8; 32], Option<Found>>,
    windows: Together<Window, Option<Duration>>,
    pages: Together<Page, Vec<PagedCall>>,
    calls: Together<Id, Vec<StoredCall>>,
    refusals: Arc<Refusals>,
}

/// What a page with bounds is counted as in a batch, in rows: what the bounds leave out is read, too.
const BOUNDED_PAGE: usize = 64;

impl Question for Page {
    fn account(&self) -> Option<&str> {
        Some(&self.account_id)
    }
}

impl Question for Id {
    fn account(&self) -> Option<&str> {
        Some(&self.account_id)
    }
}

impl Question for Window {}

impl ApiStore for Postgres {
    async fn identify(
        &self,
        received: Received,
    ) -> Result<(Identified, Option<Standing>), Rejected> {
        let found = match received.digest().map(|digest| *digest.as_bytes()) {
            Some(digest) => {
                let database = self.api.clone();
                let look_up = move |digests| look_up_keys(database.clone(), digests);
                self.shared.keys.ask(digest, 1, look_up).await
            }
            None => Ok(None),
        };
        // When a key expires, all processes agree on.
        let now = self.api.now();
        match found {
            Ok(Some((key, standing))) => Ok((received.identify(Some(&key), now)?, Some(standing))),
            Ok(None) => Ok((received.identify(None, now)?, None)),
            Err(refused) => Err(refused.rejecting(received.internal_error())),
        }
    }

    async fn admit(&self, identified: Identified) -> Result<Admitted, Rejected> {
        let (window, refusals) = (Window::of(&identified), &self.shared.refusals);
        if let Some(wait) = refusals.wait(&window) {
            return Ok(identified.admit_decided(Err(wait))?);
        }
        let database = self.api.clone();
        let admit = move |windows| count_in(database.clone(), windows);
        match self.shared.windows.ask(window.clone(), 1, admit).await {
            Ok(None) => Ok(identified.admit_decided(Ok(()))?),
            Ok(Some(wait)) => {
                refusals.note(window, wait);
                Ok(identified.admit_decided(Err(wait))?)
            }
            Err(refused) => Err(refused.rejecting(identified.internal_error())),
        }
    }

    async fn page(&self, asked: &CallsQuery) -> Done<CallPage> {
        let database = self.api.clone();
        let read = move |pages| calls::pages(database.clone(), pages);
        let most = asked.rows_to_read();
        let weight = if asked.is_filtered() { most.max(BOUNDED_PAGE) } else { most };
        calls::page_of(self.shared.pages.ask(Page::of(asked), weight, read).await?, most)
    }

    async fn call(&self, asked: &CallQuery) -> Done<Option<CallRow>> {
        let database = self.api.clone();
        let read = move |ids| calls::by_id(database.clone(), ids);
        let rows = self.shared.calls.ask(Id::of(asked), 1, read).await?;
        rows.first().map(calls::call_of).transpose()
    }
}

/// A key, its account as the public API has it, and how that stands.
type Found = (StoredKey, Standing);

/// Looks up the keys of these digests, and notes their use.
async fn look_up_keys(
    database: Database,
    digests: Vec<[u8; 32]>,
) -> Done<Vec<Done<Option<Found>>>> {
    let rows = database.read(async |client| {
        let asked: Vec<&[u8]> = digests.iter().map(<[u8; 32]>::as_slice).collect();
        let rows = sql::api_keys(client, &asked).await?;
        // When its use was noted, all processes agree on.
        let now = database.now();
        let used: BTreeSet<String> = rows.iter().filter_map(|row| to_note(row, now)).collect();
        if !used.is_empty() {
            let used: Vec<String> = used.into_iter().collect();
            sql::api_note_use(client, &used, At(now)).await?;
        }
        Ok::<_, DbError>(rows)
    });
    let rows = rows.await?.into_iter();
    let by_digest: HashMap<Vec<u8>, Done<Found>> = rows.map(found).collect();
    let found = |digest: &[u8; 32]| by_digest.get(digest.as_slice()).cloned().transpose();
    Ok(digests.iter().map(found).collect())
}

fn found(row: FoundKey) -> (Vec<u8>, Done<Found>) {
    let read = row.key.and_then(|key| Ok((key, accounts::standing_of(row.owner?))));
    (row.digest, read.map_err(Refused::from))
}

/// Returns the id of a key whose use is to be noted. One that cannot be read has an error of its own.
fn to_note(row: &FoundKey, now: Timestamp) -> Option<String> {
    let key = row.key.as_ref().ok()?;
    let is_stale =
        key.last_used_at.is_none_or(|last| now.since(last).max(last.since(now)) >= accounts::NOTED);
    (is_stale && key.revoked_at.is_none()).then(|| key.id.as_str().to_owned())
}

/// The window that a request is counted in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Window {
    credential_id: String,
    quota: &'static str,
    per_minute: u16,
}

impl Window {
    fn of(request: &Identified) -> Self {
        let quota = request.quota();
        Self {
            credential_id: request.credential_id().as_str().to_owned(),
            quota: quota.name(),
            per_minute: quota.per_minute(),
        }
    }
}

/// Counts a request in each of these windows. Some is a refusal, with the wait.
async fn count_in(database: Database, requests: Vec<Window>) -> Done<Vec<Done<Option<Duration>>>> {
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
struct Refusals(Mutex<HashMap<Window, Instant>>);

/// The most credentials that are refused at the same time: 10,000.
const REFUSALS: usize = 10_000;

impl Refusals {
    /// Returns how long a window's refusal still holds.
    fn wait(&self, window: &Window) -> Option<Duration> {
        let refusals = lock(&self.0);
        refusals.get(window)?.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
    }

    /// Notes that a window refuses for so long.
    fn note(&self, window: Window, wait: Duration) {
        let now = Instant::now();
        let mut refusals = lock(&self.0);
        if refusals.len() >= REFUSALS {
            refusals.retain(|_, until| *until > now);
        }
        if let Some(until) = now.checked_add(wait).filter(|_| refusals.len() < REFUSALS) {
            refusals.insert(window, until);
        }
    }
}
