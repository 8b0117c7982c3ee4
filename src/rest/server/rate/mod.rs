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

/// The rate limits of a host that is one process: a sliding window of 60 seconds for each credential
/// and quota.
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
/// No span of 60 seconds admits more than the quota, and a request is admitted as soon as 60 seconds
/// have passed since the oldest of the last n admissions. A bucket that refills would admit twice the
/// quota in its first minute. A quota that is raised or lowered applies at once.
///
/// An exchange counts with [`Identified::admit`](super::Identified::admit), which takes the window of
/// its own credential. Put the table behind a lock, or several tables behind several locks, by credential.
///
/// # Several processes
///
/// | host | windows | gives up |
/// |---|---|---|
/// | one process | `RateWindows` | they are lost when it restarts |
/// | several, each key always at the same process | `RateWindows` in each | the same, and whenever keys move to other processes |
/// | several | [rows in SQL](#in-sql) | a transaction for each request |
///
/// A window that is lost admits its quota again: at most twice the quota in that minute. A proxy that
/// sends each key to one process can hash the `Authorization` header; it must send a key to another
/// process only when the first one is down.
///
/// A refusal holds for its [`wait`](RateLimitError::wait), also for further requests. A process can keep it
/// and refuse by itself until then: a credential that asks too often costs the store nothing. A quota that
/// is raised meanwhile applies from then on.
///
/// # Memory
///
/// A window takes at most 400 bytes, and 16 bytes for each request of its quota, or 32 bytes if that
/// is more. There are never more windows than the maximum, so a million credentials that list calls
/// as often as they may take at most 10 GB; a million that ask once a minute take 0.3 GB.
///
/// A new credential makes the table forget a few windows that have been idle for 60 seconds, so nobody has to clean
/// up. Without new credentials a host keeps its windows. When the table is full and each window could still refuse,
/// none is dropped: its credential would be admitted twice its quota. A credential without a window is refused
/// instead; the others are not affected. A check looks at 64 windows at most to make room; if none of them is idle,
/// it refuses with a short wait, and the next check looks further. Only existing credentials come this far, so a
/// maximum above the number of issued keys, times two quotas, is never reached.
///
/// # Clocks
///
/// A clock that is set back never makes room. A `now` before the newest admission counts as the
/// instant of that admission, which also covers small differences between hosts that share a window.
/// If `now` is more than 60 seconds before it, the clock that stamped that admission was wrong: the
/// window moves back to end at `now`, so that nobody is locked out for longer than 60 seconds.
///
/// # In SQL
///
/// This PostgreSQL function admits as a window of the table does, in one statement that changes one row in
/// place. Its result goes to [`Identified::admit_decided`](super::Identified::admit_decided). It needs
/// `READ COMMITTED`, the default. A row has 4 bytes for each request of the last 60 seconds, and for up to
/// 30 older ones.
///
/// ```sql
#[doc = include_str!("../../../guide/sql/server/rate.sql")]
/// ```
///
/// Call it in a transaction of its own, for one request or for all that wait:
///
/// ```sql
#[doc = include_str!("../../../guide/sql/server/admit.sql")]
/// ```
///
/// With `synchronous_commit = off` for the connections that call it, a request does not wait for the
/// disk. A crash of the database then forgets the admissions of the last moments, at most of
/// three times `wal_writer_delay`, and nothing else.
pub struct RateWindows {
    max: usize,
    windows: BTreeMap<Key, RateWindow>,
    /// Each window once, by when to look whether it is idle: never later than it becomes idle.
    due: BTreeSet<(Timestamp, Key)>,
}

/// A quota and a credential, in words because those compare faster than bytes: the id's text, or the
/// SHA-256 of a long one.
type Key = [u64; 6];

/// The looks of a newcomer: 4, more than one, so that newcomers keep up with any number of windows.
const LOOKS: usize = 4;

/// The looks of a newcomer at windows that are all in use: 64, because everybody waits for it.
const MOST_LOOKS: usize = 64;

/// The wait of a newcomer while due windows were not looked at: 10 milliseconds.
const SHORT: Duration = Duration::from_millis(10);

impl RateWindows {
    /// Creates an empty table of at most `max` windows, at least 1. A credential that uses both
    /// quotas has two.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        let max = if max == 0 { 1 } else { max };
        Self { max, windows: BTreeMap::new(), due: BTreeSet::new() }
    }

    /// Decides whether a request of this credential is admitted now; if so, counts it.
    ///
    /// # Errors
    /// The quota is used up, or there is no room for another credential.
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
        // Newcomers clean up: where there are none, nothing grows.
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

    /// Looks at some due windows, and at more until one is idle and goes.
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

    /// Forgets the next due window if it is idle, and otherwise notes when it is due again. Returns
    /// whether there was one.
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

/// A request that came too soon: 429 `rate_limit_exceeded`. Its message says for the operator's log
/// whether the quota is used up, or whether there is no room for another credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}, a request is admitted in {wait:?}")]
#[non_exhaustive]
pub struct RateLimitError {
    /// The exact time until a request is admitted.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::rest::server) enum RateLimitReason {
    /// A credential that has used up its quota.
    #[error("the quota is used up")]
    Quota,
    /// A full [`RateWindows`], of which each window could still refuse.
    #[error("the table of rate windows is full")]
    Room,
}
