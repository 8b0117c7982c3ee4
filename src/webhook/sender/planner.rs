//! What to send next, in a process that has much to send.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

use crate::Timestamp;

/// Which delivery to send next, under limits on what is in flight.
///
/// A process that holds many pending deliveries adds each with its
/// [`due`](super::Delivery::due) time, takes the [`next`](Self::next) until there is none, begins
/// and sends what it took, and says when each attempt has [`finished`](Self::finished). One slow
/// endpoint holds no more than its share: when it has as many attempts in flight as it may, its
/// deliveries stand in a line of their own while the others go on, and endpoints that have a line
/// take turns.
///
/// Deliveries and endpoints are numbers of the host's: any for a delivery; for an endpoint one from
/// 0 up, without great gaps, since there is a table by it.
///
/// It knows nothing that the stored deliveries do not say: [`rebuild`](Self::rebuild) makes it from
/// them at any time. It may be behind them, too: a delivery that has meanwhile ended, or is leased
/// to somebody else, is refused by [`Delivery::begin`](super::Delivery::begin), and costs one step.
///
/// # Beside others
/// It knows what it was given, and that alone: what another process accepted or began before it
/// died is in the store, and in no planner. So where there are several, each looks into the store
/// every [`LEASE`](super::LEASE) or so, by the index on what is due, and adds what it has not in
/// hand already. What that is, a set of the host's says: a delivery enters it when it is added, and
/// leaves it once it has been begun and finished, or was refused. One that is added twice is not
/// sent twice, for only one of them begins, but it is looked at twice.
///
/// # Cost
/// The waits of a schedule are few, so what is added for one of them comes in order, and a queue
/// for each wait keeps all in order: every step is O(1), whatever is pending. What comes out of
/// order (by jitter, by a clock that was set) goes to a heap, at O(log n). A pending delivery takes
/// 24 bytes, in a buffer that may be twice as large as it is full; one that is due and stands in
/// line 16; each endpoint number 4, and 8 more where any has stood in line.
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
/// assert_eq!(planner.next(now).map(|next| next.delivery), Some(10));
/// assert_eq!(planner.next(now).map(|next| next.delivery), Some(20)); // 11 waits for 10
/// assert_eq!(planner.next(now), None);
/// planner.finished(0);
/// assert_eq!(planner.next(now).map(|next| next.delivery), Some(11));
/// ```
pub struct Planner {
    limits: Limits,
    lanes: [Lane; LANES],
    /// What fits into no lane.
    odd: BinaryHeap<Reverse<Pending>>,
    /// How many attempts each endpoint has in flight. Apart from the lines: most deliveries need
    /// none, and a million of these are soon found.
    endpoints: Vec<u32>,
    lines: Vec<Line>,
    /// The places in all endpoints' lines: linked, and used again.
    places: Vec<Place>,
    free: u32,
    /// Endpoints that have a line and may send, in the order of their turns.
    turns: VecDeque<u32>,
    lined_up: usize,
    in_flight: u32,
}

/// How many attempts may be in flight at once.
///
/// For one endpoint never to starve the others, its limit is well below that of all: an attempt
/// takes up to ten seconds, and so do all of those that it may have in flight. Where either is 0,
/// nothing is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Of all endpoints together.
    pub overall: u32,
    /// Of each.
    pub per_endpoint: u32,
}

/// A delivery to begin now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Planned {
    /// The host's number of the delivery.
    pub delivery: u64,
    /// The host's number of its endpoint, for [`Planner::finished`].
    pub endpoint: u32,
}

/// One more than there are waits (with none, for first attempts), and one to spare for what was
/// [rebuilt](Planner::rebuild).
const LANES: usize = 8;

/// How many deliveries a step moves into lines at most, while others may send: a flood that is due
/// at once does not stop the process, and what is due behind it is soon seen.
const BATCH: u32 = 64;

/// No place: the end of a line, or of the free ones.
const NONE: u32 = u32::MAX;

/// Ordered by time, and then by number, so that the order is total.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    /// Microseconds since 1970, rounded up: never early, and less than one microsecond late.
    due: i64,
    delivery: u64,
    endpoint: u32,
}

/// A queue in which nothing is due before what stands in front of it.
struct Lane {
    queue: VecDeque<Pending>,
    /// When the first is due; `i64::MAX` if there is none.
    front: i64,
    /// When the last is due; `i64::MIN` if there is none.
    back: i64,
}

#[derive(Clone, Copy)]
struct Line {
    first: u32,
    last: u32,
}

struct Place {
    delivery: u64,
    next: u32,
}

impl Planner {
    /// An empty planner.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            lanes: core::array::from_fn(|_| Lane {
                queue: VecDeque::new(),
                front: i64::MAX,
                back: i64::MIN,
            }),
            odd: BinaryHeap::new(),
            endpoints: Vec::new(),
            lines: Vec::new(),
            places: Vec::new(),
            free: NONE,
            turns: VecDeque::new(),
            lined_up: 0,
            in_flight: 0,
        }
    }

    /// A planner of what is stored: delivery, endpoint and due time of each that is pending, in any
    /// order. Attempts that others have in flight are due when their leases end.
    ///
    /// Do this before the process accepts any, or in the same breath as it starts to
    /// [`add`](Self::add) them: one that is accepted in between is found in the store and handed in
    /// as well, and then looked at twice.
    #[must_use]
    pub fn rebuild(
        limits: Limits,
        pending: impl IntoIterator<Item = (u64, u32, Timestamp)>,
    ) -> Self {
        let mut all: VecDeque<Pending> = pending
            .into_iter()
            .map(|(delivery, endpoint, due)| Pending { due: round_up(due), delivery, endpoint })
            .collect();
        all.make_contiguous().sort_unstable();
        let mut planner = Self::new(limits);
        // In order, and so the first lane of eight.
        if let ([first, ..], Some(front), Some(back)) =
            (planner.lanes.as_mut_slice(), all.front().copied(), all.back().copied())
        {
            *first = Lane { queue: all, front: front.due, back: back.due };
        }
        planner
    }

    /// Adds a delivery that is due at this time.
    pub fn add(&mut self, delivery: u64, endpoint: u32, due: Timestamp) {
        let pending = Pending { due: round_up(due), delivery, endpoint };
        // The lane that is closest behind keeps each wait in a lane of its own.
        let fits = self.lanes.iter_mut().filter(|lane| lane.back <= pending.due);
        match fits.max_by_key(|lane| lane.back) {
            Some(lane) => lane.push(pending),
            None => self.odd.push(Reverse(pending)),
        }
    }

    /// The delivery to begin now. `None` if nothing is due, or everything that is has to wait for
    /// an attempt to finish.
    ///
    /// It counts as in flight until its endpoint is told to have [`finished`](Self::finished).
    pub fn next(&mut self, now: Timestamp) -> Option<Planned> {
        if self.in_flight >= self.limits.overall {
            return None;
        }
        let now = round_down(now);
        let mut moved = 0_u32;
        while moved < BATCH || self.turns.is_empty() {
            let Some(Pending { delivery, endpoint, .. }) = self.pop(now) else { break };
            moved = moved.saturating_add(1);
            // The usual case: it is alone, and needs no line. There is none of its endpoint's, since
            // one that may send would have a turn.
            let alone = self.turns.is_empty() && self.first_due() > now;
            if alone && self.may_send(endpoint) {
                self.begun(endpoint);
                return Some(Planned { delivery, endpoint });
            }
            self.line_up(delivery, endpoint);
        }
        self.take_turn()
    }

    /// An attempt of this endpoint has finished, or what was planned was not begun. Of an endpoint
    /// that has nothing in flight, it says nothing.
    pub fn finished(&mut self, endpoint: u32) {
        // Not by `in_flight_of`, which makes room for an endpoint that is not known.
        let in_flight = usize::try_from(endpoint).ok().and_then(|at| self.endpoints.get_mut(at));
        let Some(in_flight) = in_flight.filter(|in_flight| **in_flight > 0) else { return };
        let could_send = *in_flight < self.limits.per_endpoint;
        *in_flight = in_flight.saturating_sub(1);
        self.in_flight = self.in_flight.saturating_sub(1);
        if !could_send {
            self.give_turn(endpoint);
        }
    }

    /// When to ask for the [`next`](Self::next) again: a host that got `None` sleeps until then, or
    /// until an attempt finishes or a delivery is added, whichever is first.
    ///
    /// It is the time of the first delivery that no `next` has seen. `None` if there is none, and
    /// while as many attempts are in flight as may be: then only the end of one makes room.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        if self.in_flight >= self.limits.overall {
            return None;
        }
        Some(self.first_due()).filter(|due| *due != i64::MAX).map(timestamp)
    }

    /// How many deliveries are pending, those in flight not among them.
    #[must_use]
    pub fn pending(&self) -> usize {
        let lanes = self.lanes.iter().map(|lane| lane.queue.len());
        lanes.fold(self.odd.len(), usize::saturating_add).saturating_add(self.lined_up)
    }

    /// How many attempts are in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// When the first of all lanes and the heap is due; `i64::MAX` if there is none.
    fn first_due(&self) -> i64 {
        self.lanes.iter().map(|lane| lane.front).fold(self.first_odd(), i64::min)
    }

    fn first_odd(&self) -> i64 {
        self.odd.peek().map_or(i64::MAX, |Reverse(pending)| pending.due)
    }

    /// Takes the first that is due, of all lanes and the heap.
    fn pop(&mut self, now: i64) -> Option<Pending> {
        let odd = self.first_odd();
        let lane = self.lanes.iter_mut().min_by_key(|lane| lane.front)?;
        if lane.front.min(odd) > now {
            return None;
        }
        if odd < lane.front {
            return self.odd.pop().map(|Reverse(pending)| pending);
        }
        lane.pop()
    }

    fn line_up(&mut self, delivery: u64, endpoint: u32) {
        let place = Place { delivery, next: NONE };
        let at = match usize::try_from(self.free).ok().and_then(|at| self.places.get_mut(at)) {
            Some(free) => {
                let at = self.free;
                self.free = free.next;
                *free = place;
                at
            }
            None => {
                // Four billion in line are 64 GB: the memory ends before the numbers do.
                let at = u32::try_from(self.places.len()).unwrap_or(NONE);
                self.places.push(place);
                at
            }
        };
        let Some(line) = self.line(endpoint) else { return };
        let before = core::mem::replace(&mut line.last, at);
        if line.first == NONE {
            line.first = at;
            self.give_turn(endpoint);
        } else if let Some(before) = self.place(before) {
            before.next = at;
        }
        self.lined_up = self.lined_up.saturating_add(1);
    }

    /// Takes the first in line of the endpoint whose turn it is.
    fn take_turn(&mut self) -> Option<Planned> {
        let endpoint = self.turns.pop_front()?;
        let at = self.line(endpoint)?.first;
        let free = self.free;
        let place = self.place(at)?;
        let delivery = place.delivery;
        let next = core::mem::replace(&mut place.next, free);
        self.free = at;
        self.line(endpoint)?.first = next;
        self.begun(endpoint);
        self.lined_up = self.lined_up.saturating_sub(1);
        self.give_turn(endpoint);
        Some(Planned { delivery, endpoint })
    }

    /// The next turn, to an endpoint that has a line and may send. It waits for no turn yet: it had
    /// no line, or might not send, or has just had its turn.
    fn give_turn(&mut self, endpoint: u32) {
        if self.line(endpoint).is_some_and(|line| line.first != NONE) && self.may_send(endpoint) {
            self.turns.push_back(endpoint);
        }
    }

    fn begun(&mut self, endpoint: u32) {
        if let Some(in_flight) = self.in_flight_of(endpoint) {
            *in_flight = in_flight.saturating_add(1);
            self.in_flight = self.in_flight.saturating_add(1);
        }
    }

    fn may_send(&mut self, endpoint: u32) -> bool {
        let limit = self.limits.per_endpoint;
        self.in_flight_of(endpoint).is_some_and(|in_flight| *in_flight < limit)
    }

    fn in_flight_of(&mut self, endpoint: u32) -> Option<&mut u32> {
        entry(&mut self.endpoints, endpoint, 0)
    }

    fn place(&mut self, at: u32) -> Option<&mut Place> {
        self.places.get_mut(usize::try_from(at).ok()?)
    }

    fn line(&mut self, endpoint: u32) -> Option<&mut Line> {
        entry(&mut self.lines, endpoint, Line { first: NONE, last: NONE })
    }
}

/// An endpoint's entry in a table, which grows up to it.
fn entry<T: Clone>(table: &mut Vec<T>, endpoint: u32, empty: T) -> Option<&mut T> {
    let at = usize::try_from(endpoint).ok()?;
    if at >= table.len() {
        table.resize(at.saturating_add(1), empty);
    }
    table.get_mut(at)
}

impl Lane {
    fn push(&mut self, pending: Pending) {
        if self.queue.is_empty() {
            self.front = pending.due;
        }
        self.back = pending.due;
        self.queue.push_back(pending);
    }

    fn pop(&mut self) -> Option<Pending> {
        let pending = self.queue.pop_front();
        match self.queue.front() {
            Some(next) => self.front = next.due,
            None => (self.front, self.back) = (i64::MAX, i64::MIN),
        }
        pending
    }
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

/// Ten thousand years are 3e17 microseconds: nothing here saturates.
fn round_down(at: Timestamp) -> i64 {
    at.unix_seconds().saturating_mul(1_000_000).saturating_add(i64::from(at.subsec_nanos() / 1_000))
}

fn round_up(at: Timestamp) -> i64 {
    round_down(at).saturating_add(i64::from(!at.subsec_nanos().is_multiple_of(1_000)))
}

fn timestamp(micros: i64) -> Timestamp {
    let nanos = u32::try_from(micros.rem_euclid(1_000_000)).unwrap_or(0).saturating_mul(1_000);
    Timestamp::from_parts(micros.div_euclid(1_000_000), nanos).unwrap_or(Timestamp::MAX)
}
