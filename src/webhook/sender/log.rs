//! The delivery log: what a dashboard shows of an attempt.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::attempt::Attempt;
use super::delivery::{Delivery, Finished, Status, Step};
use super::outcome::Outcome;
use crate::Timestamp;
use crate::secret::excerpt;

/// How much of a response's body is worth keeping: enough for an error message.
pub const KEPT_BODY: usize = 1024;

/// One attempt in a delivery's log, to be kept as long as the delivery
/// ([`Delivery::is_kept`]).
///
/// It holds what came back, never what was sent beside the body: no header, no signature, no
/// secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogEntry {
    /// Which attempt of the six, from 1; 1 for a redelivery by hand.
    pub attempt: u8,
    /// Whether it was a redelivery by hand.
    pub by_hand: bool,
    /// When it began.
    pub began_at: Timestamp,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// What came of it.
    pub outcome: Outcome,
    /// Whether it came too late to change anything of the delivery. A 410 may have disabled its
    /// endpoint all the same.
    pub late: bool,
    /// Where the delivery stood after it.
    pub status: Status,
    /// When it is attempted again, if it is.
    pub next_at: Option<Timestamp>,
    /// The beginning of the response's body.
    pub response: Option<Excerpt>,
}

/// The beginning of a response's body.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Excerpt {
    /// What the first [`KEPT_BODY`] bytes say. Bytes that are not UTF-8 are replaced, and so is
    /// whatever looks like a signing secret or an API key: a receiver's error page may show its
    /// configuration.
    /// It is the receiver's text all the same: escape it before showing it.
    pub text: String,
    /// Whether there was more.
    pub cut: bool,
}

impl LogEntry {
    /// What to log of an attempt that has just been finished: `delivery` is what it was made into
    /// by that, and `response` as much of the body as was read.
    #[must_use]
    pub fn new(
        attempt: &Attempt,
        outcome: Outcome,
        finished: &Finished,
        delivery: &Delivery,
        response: Option<&[u8]>,
        now: Timestamp,
    ) -> Self {
        Self {
            attempt: attempt.number(),
            by_hand: attempt.is_by_hand(),
            began_at: attempt.began_at(),
            took_ms: u64::try_from(now.since(attempt.began_at()).as_millis()).unwrap_or(u64::MAX),
            outcome,
            late: finished.step == Step::Late,
            status: delivery.status(),
            next_at: (delivery.status() == Status::Waiting).then(|| delivery.due()).flatten(),
            response: response.map(Excerpt::of),
        }
    }
}

impl Excerpt {
    /// The beginning of these bytes.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        Self { text: excerpt(body, KEPT_BODY), cut: body.len() > KEPT_BODY }
    }
}
