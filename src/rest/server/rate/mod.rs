//! Rate limits: an exact sliding window, as a value to store per credential and quota.

mod gaps;
mod stored;
mod windows;

use alloc::string::String;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::rest::Quota;

use gaps::Gaps;

pub use stored::RateWindowError;
pub use windows::RateWindows;

/// Counts the admissions of one credential under one quota: an exact sliding window of 60 seconds.
///
/// ```
/// use core::time::Duration;
/// use call_assistant::Timestamp;
/// use call_assistant::rest::{Quota, server::RateWindow};
///
/// let mut window = RateWindow::default(); // or the one stored for this credential and quota
/// let now = Timestamp::from_unix(1_767_225_600).unwrap();
/// for _ in 0..60 {
///     assert_eq!(window.check(Quota::ACCOUNT, now), Ok(()));
/// }
///
/// let later = now.saturating_add(Duration::from_millis(12_500));
/// let error = window.check(Quota::ACCOUNT, later).unwrap_err();
/// assert_eq!(error.wait, Duration::from_millis(47_500));
/// assert_eq!(error.retry_after(), 48);
/// assert_eq!(window.check(Quota::ACCOUNT, later.saturating_add(error.wait)), Ok(()));
/// ```
///
/// No span of 60 seconds admits more than the quota, and a request is admitted as soon as 60 seconds
/// have passed since the oldest of the last n admissions. A bucket that refills would admit twice the
/// quota in its first minute. A quota that is raised or lowered applies at once.
///
/// It takes 56 bytes, plus [heap](Self::heap_bytes): at most 160 bytes and 8 for each admission. A
/// check takes constant time, averaged over many.
///
/// # Where to keep it
///
/// | host | windows | gives up |
/// |---|---|---|
/// | one process | [`RateWindows`] | they are lost when it restarts |
/// | several, each key always at the same one | [`RateWindows`] in each | the same, and whenever keys move to other processes |
/// | several | a row each, in a shared store | a transaction for each request |
///
/// A window that is lost admits its quota again: at most twice the quota in that minute. A proxy that
/// sends each key to one process can hash the `Authorization` header; it must send a key to another
/// process only when the first one is down.
///
/// In a shared store, keep one window for each credential and [name of a quota](Quota::name). Read it,
/// check and write it back *in one transaction*: under a lock on its row, or by replacing the stored
/// form only if it has not changed. Otherwise two processes would admit the same last request.
///
/// A refusal holds until [`RateLimitError::until`], whatever else is requested. So a process keeps it
/// and refuses by itself until then, and a credential that asks too often costs the store nothing. A
/// quota that is raised meanwhile applies from then on.
///
/// # In SQL
///
/// This PostgreSQL function admits as a `RateWindow` does, in one statement that writes two short
/// rows. Its result goes to [`Identified::admit_decided`](super::Identified::admit_decided). It needs
/// `READ COMMITTED`, the default.
///
/// ```sql
#[doc = include_str!("../sql/rate.sql")]
/// ```
///
/// Call it in a transaction of its own:
///
/// ```sql
#[doc = include_str!("../sql/admit.sql")]
/// ```
///
/// With `synchronous_commit = off` for the connections that call it, a request does not wait for the
/// disk. A crash of the database then forgets the admissions of the last moments, at most of
/// three times `wal_writer_delay`, and nothing else.
///
/// # Clocks
///
/// A clock that is set back never makes room. A `now` before the newest admission counts as the
/// instant of that admission, which also covers small differences between hosts that share a window.
/// If `now` is more than 60 seconds before it, the clock that stamped that admission was wrong: the
/// window moves back to end at `now`, so that nobody is locked out for longer than 60 seconds.
///
/// # Stored form
///
/// ```
/// # use call_assistant::rest::server::RateWindow;
/// let text = r#"{"newest":"2026-01-01T00:00:01Z","gaps":"gJTr3AM"}"#;
/// let window: RateWindow = serde_json::from_str(text)?;
/// assert_eq!(window.admitted(), 2); // the other one a second before
/// assert_eq!(serde_json::to_string(&window)?, text);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// `newest` is the instant of the newest admission or null. `gaps` are the nanoseconds between
/// consecutive admissions, oldest first, each in LEB128, together in base64url without padding. Both
/// may be absent. Text that no window could have written is rejected.
///
/// [`to_bytes`](Self::to_bytes) is the same for a binary column, in about half the space:
///
/// ```
/// # use call_assistant::rest::server::RateWindow;
/// # let text = r#"{"newest":"2026-01-01T00:00:01Z","gaps":"gJTr3AM"}"#;
/// # let window: RateWindow = serde_json::from_str(text)?;
/// let bytes = window.to_bytes();
/// assert_eq!(bytes.len(), 16);
/// assert_eq!(RateWindow::from_bytes(&bytes)?, window);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// | bytes | contents |
/// |---|---|
/// | 1 | 1 if gaps are in nanoseconds, 2 if they are in microseconds |
/// | 8 | the newest admission, in seconds since 1970, signed, big-endian |
/// | 4 | its nanoseconds, big-endian |
/// | the rest | the gaps, oldest first, each in LEB128 |
///
/// Microseconds are written if each gap is a whole number of them, as it is where `now` is
/// [rounded](Timestamp::floor_to_micros). No bytes are a window without any admission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Stored", try_from = "Stored")]
pub struct RateWindow {
    /// The newest admission, in the two parts of a timestamp, which packs better. They mean nothing
    /// while `admitted` is 0.
    seconds: i64,
    nanos: u32,
    admitted: u32,
    /// Nanoseconds from the oldest admission to the newest: the sum of the gaps, below `SPAN`.
    spread: u64,
    gaps: Gaps,
}

const SPAN: u64 = 60_000_000_000;

impl RateWindow {
    /// Decides whether a request is admitted now, and if so, counts it. Store the window afterwards:
    /// a refusal is not counted, but admissions older than 60 seconds are dropped in both cases.
    ///
    /// # Errors
    /// The quota is used up.
    pub fn check(&mut self, quota: Quota, now: Timestamp) -> Result<(), RateLimitError> {
        let age = self.settle(now);
        let over = self.admitted.saturating_add(1).saturating_sub(u32::from(quota.per_minute()));
        if over > 0 {
            // How long before the newest admission the oldest one that still counts was. Gaps are
            // skipped only if the quota was lowered.
            let older = usize::try_from(over).unwrap_or(usize::MAX).saturating_sub(1);
            let behind = self.gaps.iter().take(older).fold(self.spread, u64::saturating_sub);
            let wait = Duration::from_nanos(SPAN.saturating_sub(behind));
            // A clock that stepped back has that way to go as well.
            let wait = wait.saturating_sub(age).saturating_add(self.newest().since(now));
            return Err(RateLimitError { wait, reason: RateLimitReason::Quota });
        }
        if self.admitted > 0 {
            let gap = nanos(age);
            self.gaps.push(gap);
            self.spread = self.spread.saturating_add(gap);
        }
        self.set_newest(self.newest().max(now));
        self.admitted = self.admitted.saturating_add(1);
        Ok(())
    }

    /// Returns how many requests were admitted in the 60 seconds before the last check.
    #[must_use]
    pub const fn admitted(&self) -> usize {
        // Widening: there is no `From` in a constant.
        #[allow(clippy::as_conversions)]
        {
            self.admitted as usize
        }
    }

    /// Returns whether nothing was admitted in the last 60 seconds. Such a window equals a new one:
    /// its row can be deleted.
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.admitted == 0 || now.since(self.newest()) >= Quota::SPAN
    }

    /// Returns the size of its heap memory in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.gaps.heap_bytes()
    }

    /// [`is_idle`](Self::is_idle), after which an instant that a wrong clock stamped far ahead is
    /// no longer ahead: the window becomes idle in time even if nobody uses it.
    fn idles(&mut self, now: Timestamp) -> bool {
        if self.newest().since(now) > Quota::SPAN {
            self.set_newest(now);
        }
        self.is_idle(now)
    }

    fn newest(&self) -> Timestamp {
        Timestamp::from_parts(self.seconds, self.nanos).unwrap_or(Timestamp::MIN)
    }

    fn set_newest(&mut self, newest: Timestamp) {
        (self.seconds, self.nanos) = (newest.unix_seconds(), newest.subsec_nanos());
    }

    /// When it will be idle, if nothing more is admitted.
    fn idle_at(&self) -> Timestamp {
        self.newest().saturating_add(Quota::SPAN)
    }

    /// Forgets what is 60 seconds old, and says how long ago the newest admission was.
    fn settle(&mut self, now: Timestamp) -> Duration {
        if self.idles(now) {
            self.clear();
            return Duration::ZERO;
        }
        let age = now.since(self.newest());
        let old = SPAN.saturating_sub(nanos(age));
        if self.spread >= old {
            self.forget(old);
        }
        age
    }

    fn forget(&mut self, old: u64) {
        while self.spread >= old
            && let Some(gap) = self.gaps.pop()
        {
            self.spread = self.spread.saturating_sub(gap);
            self.admitted = self.admitted.saturating_sub(1);
        }
        self.gaps.shrink();
    }

    fn clear(&mut self) {
        self.gaps.clear();
        *self = Self { gaps: core::mem::take(&mut self.gaps), ..Self::default() };
    }
}

/// The JSON form.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(default)]
    newest: Option<Timestamp>,
    #[serde(default)]
    gaps: String,
}

impl Default for RateWindow {
    /// A window without any admission.
    fn default() -> Self {
        let (seconds, nanos) = (Timestamp::MIN.unix_seconds(), 0);
        Self { seconds, nanos, admitted: 0, spread: 0, gaps: Gaps::default() }
    }
}

/// Says that a request came too soon: 429 `rate_limit_exceeded`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}, a request is admitted in {wait:?}")]
#[non_exhaustive]
pub struct RateLimitError {
    /// How long until a request is admitted, exactly.
    pub wait: Duration,
    /// What stands in the way, for the operator's log.
    pub reason: RateLimitReason,
}

impl RateLimitError {
    /// Returns the value of `Retry-After`: the wait in whole seconds, rounded up, at least 1.
    #[must_use]
    pub fn retry_after(&self) -> u64 {
        let more = u64::from(self.wait.subsec_nanos() > 0);
        self.wait.as_secs().saturating_add(more).max(1)
    }

    /// Returns the instant until which the refusal holds: no request of this credential is admitted
    /// before, so the check need not be made again. `now` is that of the check.
    #[must_use]
    pub fn until(&self, now: Timestamp) -> Timestamp {
        now.saturating_add(self.wait)
    }
}

/// Says why a request is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateLimitReason {
    /// The credential has used up its quota.
    #[error("the quota is used up")]
    Quota,
    /// [`RateWindows`] has as many windows as it may, and each of them could still refuse.
    #[error("as many credentials are active as there may be windows")]
    Room,
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
