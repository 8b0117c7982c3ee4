//! What to send next, in a process that has much to send.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::fmt;

use super::limits::Limits;
use super::schedule::{LONGEST_WAIT, farthest};
use crate::Timestamp;

/// Decides which delivery to send next, under limits on what is in flight.
///
/// ```
/// use call_assistant::webhook::sender::{Limits, Planner};
/// use call_assistant::Timestamp;
///
/// let now = Timestamp::UNIX_EPOCH;
/// let mut planner = Planner::new(Limits { overall: 100, per_endpoint: 1 });
/// planner.add(10, 0, now);
/// planner.add(11, 0, now);
/// planner.add(20, 1, now);
///
/// assert_eq!(planner.next(now), Some((10, 0)));
/// assert_eq!(planner.next(now), Some((20, 1))); // 11 waits for 10
/// assert_eq!(planner.next(now), None);
/// planner.finished(0);
/// assert_eq!(planner.next(now), Some((11, 0)));
/// ```
///
/// A process that holds many pending deliveries [adds](Self::add) each with its
/// [`due`](super::Delivery::due) time, takes the [`next`](Self::next) until there is none, begins
/// and sends what it took, and reports each attempt that has [`finished`](Self::finished). An
/// endpoint that has as many attempts in flight as it may gets a line of its own, and endpoints
/// that have a line take turns. So one slow endpoint holds up no other.
///
/// Deliveries and endpoints are numbers of the host's. Delivery numbers may be any; endpoint numbers
/// count from 0 without large gaps, because they index a table.
///
/// The planner knows nothing that the stored deliveries do not say, so it can be
/// [rebuilt](Self::rebuild) from them at any time. It may also be outdated: a delivery that has
/// ended, or is leased to another sender, is refused by
/// [`Delivery::begin`](super::Delivery::begin), which costs one step.
///
/// # Several processes
/// A planner knows only what was added to it. What another process accepted, or began before it
/// died, is in the store alone. So every process searches the store about every
/// [`ATTEMPT_LEASE`](super::ATTEMPT_LEASE) for what is due, and adds the deliveries that it does
/// not hold yet. The host tracks those in a set: a delivery enters the set when it is added, and
/// leaves it when it was refused, or was begun and has finished. One that is added twice is not
/// sent twice, because only one of the two can begin.
///
/// # Clocks
/// A delivery that is due more than twelve hours after `now` was added by a clock that was wrong,
/// because no wait is longer than six. It counts as due.
///
/// # Cost
/// A schedule has few different waits, so deliveries that are added for one wait come in order. A
/// queue for each wait keeps all of them in order, and every step is O(1), however many are pending.
/// Deliveries that come out of order, because of jitter or a clock that was set, go to a tree, at
/// O(log n). A pending delivery takes 24 bytes in a buffer that may be half empty, or 8 in its
/// endpoint's line; an endpoint number takes 4 bytes, and 32 more where any has had a line.
pub struct Planner {
    limits: Limits,
    lanes: [VecDeque<Pending>; LANES],
    /// What fits into no lane.
    unordered: BTreeSet<Pending>,
    /// How many attempts each endpoint has in flight. Apart from the lines, because most deliveries
    /// need no line, and a small table stays in the cache.
    in_flight_of: Vec<u32>,
    /// Each endpoint's deliveries that are due and wait for room or for a turn.
    lines: Vec<VecDeque<u64>>,
    /// Endpoints that have a line and may send, in the order of their turns; each at most once.
    turns: VecDeque<u32>,
    in_line: usize,
    in_flight: u32,
}

/// One for each wait, one for first attempts, one for what was [rebuilt](Planner::rebuild), and one
/// to spare.
const LANES: usize = 8;

/// How many deliveries a step moves into lines at most while others may send: deliveries that are
/// all due at once do not stop the process.
const BATCH: usize = 64;

/// Ordered by time, then by number, so that the order is total.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    /// In microseconds since 1970, rounded up: never early, and less than a microsecond late.
    due: i64,
    delivery: u64,
    endpoint: u32,
}

#[expect(
    clippy::arithmetic_side_effects,
    reason = "counts what is in memory, and `in_flight` stays within its limit"
)]
impl Planner {
    /// Creates an empty planner.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            lanes: [const { VecDeque::new() }; LANES],
            unordered: BTreeSet::new(),
            in_flight_of: Vec::new(),
            lines: Vec::new(),
            turns: VecDeque::new(),
            in_line: 0,
            in_flight: 0,
        }
    }

    /// Creates a planner of what is stored: delivery, endpoint and due time of each pending delivery,
    /// in any order. Attempts that others have in flight are due when their leases expire; leave out
    /// those of this process, and count them with [`began`](Self::began).
    ///
    /// Do this before the process accepts events, or together with the first [`add`](Self::add): a
    /// delivery that is accepted in between would be added twice.
    #[must_use]
    pub fn rebuild(
        limits: Limits,
        pending: impl IntoIterator<Item = (u64, u32, Timestamp)>,
    ) -> Self {
        let mut all: Vec<Pending> = pending
            .into_iter()
            .map(|(delivery, endpoint, due)| Pending { due: round_up(due), delivery, endpoint })
            .collect();
        all.sort_unstable();
        let mut planner = Self::new(limits);
        // All are in order, and fit into one lane.
        let [first, ..] = &mut planner.lanes;
        *first = all.into();
        planner
    }

    /// Adds a delivery that is due at this time.
    pub fn add(&mut self, delivery: u64, endpoint: u32, due: Timestamp) {
        let pending = Pending { due: round_up(due), delivery, endpoint };
        // The lane that ends closest before it, so that each wait keeps a lane of its own.
        let fits = self.lanes.iter_mut().filter(|lane| last_due(lane) <= pending.due);
        match fits.max_by_key(|lane| last_due(lane)) {
            Some(lane) => lane.push_back(pending),
            None => _ = self.unordered.insert(pending),
        }
    }

    /// Takes the delivery to begin now, and its endpoint. `None` if nothing is due, or everything that is due has to
    /// wait for an attempt to finish.
    ///
    /// It counts as in flight until [`finished`](Self::finished) is called for its endpoint.
    pub fn next(&mut self, now: Timestamp) -> Option<(u64, u32)> {
        if self.in_flight >= self.limits.overall {
            return None;
        }
        // Rounded up, so that nothing is taken that `Delivery::begin` would call early.
        let farthest = round_up(now.saturating_add(farthest(LONGEST_WAIT)));
        let now = now.unix_micros();
        let mut moved = 0;
        while moved < BATCH || self.turns.is_empty() {
            let Some(Pending { delivery, endpoint, .. }) = self.pop(now, farthest) else { break };
            moved += 1;
            // The usual case: nothing else is due, so it needs no line. Its endpoint has none: with
            // a line and room it would have a turn.
            if self.turns.is_empty() && self.may_send(endpoint) && self.first_due() > now {
                return Some(self.begin(delivery, endpoint));
            }
            self.line_up(delivery, endpoint);
        }
        self.take_turn()
    }

    /// Reports that an attempt of this endpoint has finished, or that what was planned was not
    /// begun. Ignored for an endpoint that has nothing in flight.
    pub fn finished(&mut self, endpoint: u32) {
        // Not by `entry`, which makes room for a number that is not known.
        let known = usize::try_from(endpoint).ok().and_then(|at| self.in_flight_of.get_mut(at));
        let Some(in_flight) = known.filter(|in_flight| **in_flight > 0) else { return };
        let gets_room = *in_flight == self.limits.per_endpoint;
        *in_flight -= 1;
        self.in_flight -= 1;
        // With room before, it has a turn already, or no line; above the limit, it has still none.
        if gets_room && !entry(&mut self.lines, endpoint).is_empty() {
            self.turns.push_back(endpoint);
        }
    }

    /// Counts an attempt that this process has in flight already, after the planner was
    /// [rebuilt](Self::rebuild). It ends with [`finished`](Self::finished).
    ///
    /// Such attempts may exceed the limits; then nothing else begins.
    pub fn began(&mut self, endpoint: u32) {
        *entry(&mut self.in_flight_of, endpoint) += 1;
        self.in_flight += 1;
        if !self.may_send(endpoint) {
            self.turns.retain(|turn| *turn != endpoint);
        }
    }

    /// Forgets the pending deliveries of an endpoint that this process does not own any more, or
    /// that is disabled. What is in flight stays until it has [`finished`](Self::finished).
    pub fn forget(&mut self, endpoint: u32) {
        self.retain(|_, of| of != endpoint);
    }

    /// Keeps only the pending deliveries, with their endpoints, for which `keep` returns true: one
    /// pass, when several endpoints go to another owner at once.
    pub fn retain(&mut self, mut keep: impl FnMut(u64, u32) -> bool) {
        for lane in &mut self.lanes {
            lane.retain(|pending| keep(pending.delivery, pending.endpoint));
        }
        self.unordered.retain(|pending| keep(pending.delivery, pending.endpoint));
        self.in_line = 0;
        for (endpoint, line) in (0..).zip(&mut self.lines) {
            line.retain(|delivery| keep(*delivery, endpoint));
            self.in_line += line.len();
        }
        let lines = &mut self.lines;
        self.turns.retain(|endpoint| !entry(lines, *endpoint).is_empty());
    }

    /// Returns when to ask for the [`next`](Self::next) again. After a `None`, sleep until then, or
    /// until an attempt finishes or a delivery is added.
    ///
    /// It is the due time of the first delivery that `next` has not seen yet. `None` if there is
    /// none, and while the overall limit is reached: then only the end of an attempt makes room.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        if self.in_flight >= self.limits.overall {
            return None;
        }
        Some(self.first_due()).filter(|due| *due != i64::MAX).map(timestamp)
    }

    /// Returns how many deliveries are pending, without those in flight.
    #[must_use]
    pub fn pending(&self) -> usize {
        let lanes: usize = self.lanes.iter().map(VecDeque::len).sum();
        lanes + self.unordered.len() + self.in_line
    }

    /// Returns how many attempts are in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// When the first delivery outside the lines is due; `i64::MAX` if there is none.
    fn first_due(&self) -> i64 {
        self.lanes.iter().map(first_due).fold(self.first_unordered(), i64::min)
    }

    fn first_unordered(&self) -> i64 {
        self.unordered.first().map_or(i64::MAX, |pending| pending.due)
    }

    /// Takes the first delivery that is due, or one whose due time is too far ahead to be right.
    fn pop(&mut self, now: i64, farthest: i64) -> Option<Pending> {
        let unordered = self.first_unordered();
        let lane = self.lanes.iter_mut().min_by_key(|lane| first_due(lane));
        match lane {
            Some(lane) if first_due(lane) <= now.min(unordered) => lane.pop_front(),
            _ if unordered <= now => self.unordered.pop_first(),
            _ => self.pop_misdated(farthest),
        }
    }

    fn pop_misdated(&mut self, farthest: i64) -> Option<Pending> {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| last_due(lane) > farthest) {
            return lane.pop_back();
        }
        let last = self.unordered.last()?;
        if last.due > farthest { self.unordered.pop_last() } else { None }
    }

    fn line_up(&mut self, delivery: u64, endpoint: u32) {
        let may_send = self.may_send(endpoint);
        let line = entry(&mut self.lines, endpoint);
        line.push_back(delivery);
        if may_send && line.len() == 1 {
            self.turns.push_back(endpoint);
        }
        self.in_line += 1;
    }

    /// Takes the first in line of the endpoint whose turn it is.
    #[expect(clippy::expect_used, reason = "an endpoint has a turn only while it has a line")]
    fn take_turn(&mut self) -> Option<(u64, u32)> {
        let endpoint = self.turns.pop_front()?;
        let line = entry(&mut self.lines, endpoint);
        let delivery = line.pop_front().expect("a turn is given to a line");
        let more = !line.is_empty();
        self.in_line -= 1;
        let planned = self.begin(delivery, endpoint);
        if more && self.may_send(endpoint) {
            self.turns.push_back(endpoint);
        }
        Some(planned)
    }

    fn begin(&mut self, delivery: u64, endpoint: u32) -> (u64, u32) {
        *entry(&mut self.in_flight_of, endpoint) += 1;
        self.in_flight += 1;
        (delivery, endpoint)
    }

    fn may_send(&mut self, endpoint: u32) -> bool {
        *entry(&mut self.in_flight_of, endpoint) < self.limits.per_endpoint
    }
}

/// Returns an endpoint's entry in a table, which grows up to it.
#[expect(clippy::expect_used, reason = "a table that does not fit into memory fails earlier")]
fn entry<T: Clone + Default>(table: &mut Vec<T>, endpoint: u32) -> &mut T {
    let at = usize::try_from(endpoint).expect("endpoint numbers fit into memory");
    if at >= table.len() {
        table.resize(at.saturating_add(1), T::default());
    }
    table.get_mut(at).expect("the table has just grown")
}

fn first_due(lane: &VecDeque<Pending>) -> i64 {
    lane.front().map_or(i64::MAX, |pending| pending.due)
}

/// `i64::MIN` if it is empty: then everything fits.
fn last_due(lane: &VecDeque<Pending>) -> i64 {
    lane.back().map_or(i64::MIN, |pending| pending.due)
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planner")
            .field("limits", &self.limits)
            .field("pending", &self.pending())
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

fn round_up(at: Timestamp) -> i64 {
    at.unix_micros().saturating_add(i64::from(!at.subsec_nanos().is_multiple_of(1_000)))
}

/// The last microsecond of the year 9999, rounded up, is not a timestamp.
fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_unix_micros(micros).unwrap_or(Timestamp::MAX)
}
