//! Rate limits: an exact sliding window for each credential and quota, in one bounded table.

mod window;

use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt;
use core::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::Timestamp;
use crate::id::CredentialId;
use crate::rest::Quota;

use window::RateWindow;

/// The rate limits of a host with one process: a sliding window of 60 seconds for each credential and quota.
///
/// ```
/// use core::time::Duration;
/// use call_assistant::Timestamp;
/// use call_assistant::id::CredentialId;
/// use call_assistant::rest::{Quota, server::RateWindows};
///
/// let mut windows = RateWindows::new(1_000_000);
/// let credential = CredentialId::parse("cred_1")?;
/// let now = Timestamp::UNIX_EPOCH;
/// for _ in 0..60 {
///     assert_eq!(windows.check(&credential, Quota::ACCOUNT, now), Ok(()));
/// }
///
/// let later = now.saturating_add(Duration::from_millis(12_500));
/// let error = windows.check(&credential, Quota::ACCOUNT, later).unwrap_err();
/// assert_eq!(error.wait, Duration::from_millis(47_500));
/// assert_eq!(error.retry_after(), 48);
/// assert_eq!(windows.check(&credential, Quota::ACCOUNT, later.saturating_add(error.wait)), Ok(()));
/// # Ok::<(), call_assistant::TextError>(())
/// ```
///
/// In any span of 60 seconds, a window never admits more requests than the quota allows. Under a quota of n
/// requests, a request is admitted as soon as 60 seconds have passed since the oldest of the last n
/// admissions. If a quota is raised or lowered, the new quota applies at once.
///
/// In an exchange, [`Identified::admit`](super::Identified::admit) uses the window of the request's
/// credential. Protect the table by a lock, or distribute the credentials over several tables, each with its
/// own lock.
///
/// # Several processes
///
/// | processes | windows | drawback |
/// |---|---|---|
/// | one | `RateWindows` | windows are lost at restarts |
/// | several, each key always at the same process | `RateWindows` in each | windows are lost at restarts and when keys move |
/// | several | [rows in SQL](#in-sql) | each request needs a transaction |
///
/// If a window is lost, its quota can be used again, so up to twice the quota can be admitted within 60
/// seconds. To send each key to one process, a proxy can hash the `Authorization` header. The proxy may send
/// a key to another process only if the key's process is down.
///
/// After a refusal, a process can refuse all requests of the same window during the
/// [`wait`](RateLimitError::wait), without asking the store. For this process, a quota that is raised during
/// the wait applies only after the wait.
///
/// # Memory
///
/// A window under a quota of n requests takes at most 400 + max(32, 16 n) bytes. The table never has more windows than
/// its maximum. If a million credentials use the full quota for lists, the table takes at most 10 GB. If a million
/// credentials send one request a minute, the table takes 0.3 GB.
///
/// For each new credential, the table removes a few windows that have been idle for 60 seconds. Without new
/// credentials, the table keeps its idle windows.
///
/// If the table is full and no window is idle, a credential without a window is refused. The table drops no
/// window in use, because the window's credential could then use its quota twice. To free a slot, a check
/// examines at most 64 windows. If none of these windows is idle, the check refuses its request with a short
/// wait, and the next check examines other windows. Each issued key has at most two windows. Therefore, if
/// the maximum of a table is above twice the number of issued keys, the table is never full.
///
/// # Clocks
///
/// A clock that is set back never causes additional admissions. If `now` is before a window's newest
/// admission, `now` counts as the instant of this admission. This rule also covers small differences between
/// the clocks of hosts that share a window. If `now` is more than 60 seconds before the newest admission, the
/// clock that stamped this admission was wrong. The window then moves back, so that its newest admission is
/// at `now`. Therefore no credential is locked out for longer than 60 seconds.
///
/// # In SQL
///
/// The following PostgreSQL function admits requests by the rules of `RateWindows`, in one statement that
/// changes one row in place. Pass the function's result to
/// [`Identified::admit_decided`](super::Identified::admit_decided). The function needs `READ COMMITTED`, the
/// default isolation level. A row has 4 bytes for each request of the last 60 seconds, and 4 bytes for each
/// of up to 30 older requests.
///
/// ```sql
#[doc = include_str!("../../../guide/sql/server/rate.sql")]
/// ```
///
/// Call the function in a transaction without other statements, for one request or for all waiting requests:
///
/// ```sql
#[doc = include_str!("../../../guide/sql/server/admit.sql")]
/// ```
///
/// If the connections that call the function have `synchronous_commit = off`, a request does not wait for the
/// disk. If the database then crashes, it loses at most the admissions of the last `3 × wal_writer_delay`.
pub struct RateWindows {
    max: usize,
    windows: BTreeMap<Key, RateWindow>,
    /// Each window once, by the time of its next idle check. The window never becomes idle before this time.
    due: BTreeSet<(Timestamp, Key)>,
}

/// A quota and a credential, in words of 64 bits, because words compare faster than bytes. The credential is
/// the text of its id, or the SHA-256 of a long id.
type Key = [u64; 6];

/// The number of idle checks for a new credential: 4. More than one check lets the checks keep up with any
/// number of windows.
const LOOKS: usize = 4;

/// The maximum number of idle checks for a new credential while the table is full: 64. All other requests
/// wait for these checks.
const MOST_LOOKS: usize = 64;

/// The wait of a new credential if some due windows were not checked: 10 milliseconds.
const SHORT: Duration = Duration::from_millis(10);

impl RateWindows {
    /// Creates an empty table of at most `max` windows. If `max` is 0, the maximum is 1. A credential that
    /// uses both quotas has two windows.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        let max = if max == 0 { 1 } else { max };
        Self { max, windows: BTreeMap::new(), due: BTreeSet::new() }
    }

    /// Decides whether a request of this credential is admitted now. Counts an admitted request.
    ///
    /// # Errors
    /// Returns an error if the quota is used up, or if the table has no room for a new credential.
    pub fn check(
        &mut self,
        credential: &CredentialId,
        quota: Quota,
        now: Timestamp,
    ) -> Result<(), RateLimitError> {
        let key = key(credential, quota);
        if let Some(window) = self.windows.get_mut(&key) {
            return window.check(quota, now);
        }
        // Only new credentials clean up, because the table grows only with them.
        self.make_room(now)?;
        self.due.insert((now.saturating_add(Quota::SPAN), key));
        self.windows.entry(key).or_default().check(quota, now)
    }

    /// Returns the number of windows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.windows.len()
    }

    /// Returns whether there are no windows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Checks a few due windows. If the table is full, checks more until an idle window is removed.
    fn make_room(&mut self, now: Timestamp) -> Result<(), RateLimitError> {
        for looks in 0..MOST_LOOKS {
            let is_enough = looks >= LOOKS && self.windows.len() < self.max;
            if is_enough || !self.look_at_one(now) {
                break;
            }
        }
        if self.windows.len() < self.max {
            return Ok(());
        }
        // A window that is due and was not looked at may go at the next look.
        let wait = self.due.first().map_or(SHORT, |(due, _)| due.since(now).max(SHORT));
        Err(RateLimitError { wait: wait.min(Quota::SPAN), reason: RateLimitReason::Room })
    }

    /// Removes the next due window if the window is idle. Otherwise, notes the time of its next check.
    /// Returns whether a window was due.
    fn look_at_one(&mut self, now: Timestamp) -> bool {
        // No window is due later than in two minutes, unless the clock that stamped it was wrong.
        let latest = now.saturating_add(Quota::SPAN.saturating_mul(2));
        let first = self.due.first().filter(|(due, _)| *due <= now);
        let next = first.or_else(|| self.due.last().filter(|(due, _)| *due > latest));
        let Some((due, key)) = next.copied() else { return false };
        self.due.remove(&(due, key));
        if let Some(window) = self.windows.get_mut(&key) {
            if window.becomes_idle(now) {
                self.windows.remove(&key);
            } else {
                self.due.insert((window.idle_at(), key));
            }
        }
        true
    }
}

fn key(credential: &CredentialId, quota: Quota) -> Key {
    let mut bytes = [0; size_of::<Key>()];
    let [kind, len, text @ ..] = &mut bytes;
    *kind = quota.name().as_bytes().first().copied().unwrap_or_default();
    let id = credential.as_str().as_bytes();
    if let (Some(text), Ok(id_len)) = (text.get_mut(..id.len()), u8::try_from(id.len())) {
        *len = id_len;
        text.copy_from_slice(id);
    } else {
        *len = u8::MAX; // more than fits, so no text has this length
        text.iter_mut().zip(Sha256::digest(id)).for_each(|(to, from)| *to = from);
    }
    let mut key = Key::default();
    key.iter_mut().zip(bytes.as_chunks().0).for_each(|(to, from)| *to = u64::from_ne_bytes(*from));
    key
}

impl fmt::Debug for RateWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateWindows")
            .field("len", &self.len())
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}

/// The error of a request that came too soon: 429 `rate_limit_exceeded`. The message, for the operator's log,
/// shows whether the quota is used up, the table is full, or [the host](super::Identified::admit_decided)
/// refused the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} {wait:?}")]
#[non_exhaustive]
pub struct RateLimitError {
    /// If the quota is used up, the exact time until a request is admitted. If the table is full, the time
    /// until another check may free a slot: 10 milliseconds to 60 seconds.
    pub wait: Duration,
    pub(in crate::rest::server) reason: RateLimitReason,
}

impl RateLimitError {
    /// Returns the value of `Retry-After`: the wait in whole seconds, rounded up, at least 1.
    #[must_use]
    pub fn retry_after(&self) -> u64 {
        let more = u64::from(self.wait.subsec_nanos() > 0);
        self.wait.as_secs().saturating_add(more).max(1)
    }
}

/// The reason of a refusal. The wait follows each text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::rest::server) enum RateLimitReason {
    /// A credential that has used up its quota.
    #[error("the quota is used up, a request is admitted in")]
    Quota,
    /// A full [`RateWindows`] without an idle window.
    #[error("the table of rate windows is full, a slot may be free in")]
    Room,
    /// A decision of the host, whose reason is unknown.
    #[error("the host's rate limit refused the request, with a wait of")]
    Decided,
}
