//! The steps that a flow asks its host to take.

use core::fmt;
use core::time::Duration;

use http::Request;

use super::FlowError;
use super::task::FlowTask;
use crate::Timestamp;

/// The next step of the host.
///
/// Closed: a host handles each step differently. The flow of a single request has nothing to store.
/// Therefore its `match` has the arm `Store(never) => match *never {}`.
#[must_use = "do it, and ask again"]
pub enum Step<'f, T: FlowTask + 'f> {
    /// A request to send. Report the answer, or the lack of an answer.
    Send {
        /// The request, which has no body.
        request: Request<()>,
        /// The time limit for the whole request, up to the last byte of the answer.
        time_limit: Duration,
        /// The ticket for the report of the answer.
        ticket: Ticket,
    },
    /// The instant at which to call [`Flow::next`](super::Flow::next) again. Sleep for
    /// `until.since(now())`. Before this instant, `next` returns the same step.
    Wait(Timestamp),
    /// A batch to store in one transaction, before you call [`Flow::stored`](super::Flow::stored). The
    /// batch is borrowed from the flow. Therefore, before you call `stored`, clone the parts that you
    /// keep.
    Store(&'f T::Batch),
    /// The result of the task, or an error. [`FlowError::action`] returns who must act on the error.
    Done(Result<T::Output, FlowError>),
}

/// The number of one request of a flow. The host reports the answer with this ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    pub(super) number: u64,
    /// Eight bytes that distinguish the tickets of two flows, because an answer can arrive after
    /// its flow was dropped.
    pub(super) random: [u8; 8],
}

/// The progress of a [`Flow`](super::Flow), for a line on a terminal or in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Progress {
    /// The pages read.
    pub pages: u64,
    /// The calls passed to the host.
    pub calls: u64,
    /// The unreadable items passed to the host.
    pub unreadable: u64,
    /// The failed tries.
    pub failures: u64,
    /// The restarts of the list: see [`Flow::with_restarts`](super::Flow::with_restarts).
    pub restarts: u32,
    /// The `started_at` of the call read last. A list begins with the newest call, so this time
    /// decreases.
    pub reached: Option<Timestamp>,
    /// The `created_after` of the list; `None` if the list has no such bound.
    pub wanted: Option<Timestamp>,
}

impl<T: FlowTask> fmt::Debug for Step<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send { request, ticket, .. } => {
                f.debug_struct("Send").field("uri", request.uri()).field("ticket", ticket).finish()
            }
            Self::Wait(until) => f.debug_tuple("Wait").field(until).finish(),
            Self::Store(_) => f.write_str("Store(..)"),
            Self::Done(Ok(_)) => f.write_str("Done(Ok(..))"),
            Self::Done(Err(error)) => write!(f, "Done(Err({error:?}))"),
        }
    }
}
