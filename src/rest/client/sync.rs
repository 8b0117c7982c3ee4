//! Incremental sync of calls that neither loses nor repeats any.
//!
//! # Why a watermark alone loses calls
//!
//! `created_at` is when the service *began* to write a call. A call becomes visible a little later,
//! perhaps after calls with a later `created_at`; and the list is ordered by `started_at`, so a call
//! that was written just now may stand anywhere in it, before or behind the page that is being
//! read. So three rules, not one:
//!
//! 1. **Ask from below the watermark.** A query begins a lag (a minute unless told otherwise) below
//!    it. The ids of calls returned from there on are kept and never returned again.
//! 2. **The watermark stops where the walk began.** It becomes the largest `created_at` *on the
//!    first page*. Whatever was written a lag before that was visible during the whole walk. A call
//!    that a later page shows may be more recent than others the walk has already passed by: to
//!    move the watermark there is how calls get lost.
//! 3. **It moves only when the last page has been taken**, never before.
//!
//! The first page is the service's own word for what time it was there when the walk began, so no
//! clock of the customer's has to be right: one that is ahead loses nothing. `now` serves one
//! purpose: a record dated after it is not believed, so that one call dated to the year 9999 does
//! not end the sync for good. With a clock that is behind, the watermark stays behind as far, and the
//! ids from there on are kept; and it moves only while the first page shows a call that is old
//! enough, so that a clock behind by more than the newest page spans leaves it where it is: nothing
//! is lost, but every walk asks for all of it again. A first page that is empty and yet leads on says
//! nothing about the time, so its walk moves no watermark, and loses nothing either.
//!
//! # What is promised
//!
//! Of every call, whatever the order in which the service writes and shows them, exactly one of
//! the states that were *saved* has returned it, if from the beginning of a writing transaction
//! until its call shows in every answer takes at most the lag. Replicas that are behind, and
//! clocks of the service's machines that differ, count into that.
//!
//! **Save the fresh calls and the next state in one transaction.** Then every call is processed
//! exactly once, whatever crashes when. Where that cannot be, save the calls first, by id, and then
//! the state: a crash in between returns them once more, and storing them again changes nothing,
//! since a call never changes. A state is a value: taking a page leaves the old one as it is, and
//! the same page can be taken again. Two workers on one sync do no harm either if each saves only
//! over the state that it has read.
//!
//! The state is small however long the history: a place in the list, and ids, of the calls within
//! the lag below the watermark and of those at the place's own instant. A first sync of years of
//! calls is the same walk, and goes on where it stopped.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::paging::{Paging, PagingError, Turn};
use crate::Timestamp;
use crate::id::CallId;
use crate::model::{Call, CallList};
use crate::rest::ListCalls;
use crate::rest::{CreatedRange, Limit};

/// How far below its watermark a sync asks unless told otherwise: a minute.
pub const DEFAULT_LAG: Duration = Duration::from_secs(60);

/// The state of one account's sync: keep it, as JSON or however else serde writes it, beside the
/// calls. See the [module](self) for what it promises.
///
/// ```
/// use call_assistant::rest::client::CallSync;
/// # use call_assistant::model::{Call, CallList};
/// # use call_assistant::{id::CallId, rest::ListCalls, Timestamp};
/// # let now = Timestamp::from_unix(1_784_887_200).unwrap();
/// # let call = Call::new(CallId::parse("call_1").unwrap(), now, now);
/// # let page = CallList::new(vec![call], None);
/// # let ask = |_: ListCalls| page.clone();
/// # let mut rows = 0;
///
/// let mut sync = CallSync::new(); // or the one saved last
/// loop {
///     let step = sync.take(&ask(sync.query()), now)?;
///     rows += step.fresh.len(); // one transaction: the calls, and `step.next`
///     sync = step.next;
///     if !sync.is_walking() {
///         break; // up to date: walk again in a while
///     }
/// }
/// # assert_eq!(rows, 1);
/// # assert_eq!(sync.take(&ask(sync.query()), now)?.fresh, []);
/// # Ok::<(), call_assistant::rest::client::SyncError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSync {
    lag: Duration,
    #[serde(default)]
    since: Option<Timestamp>,
    /// Every call written a lag or more before it has been returned, but for those before `since`.
    #[serde(default)]
    watermark: Option<Timestamp>,
    /// The calls returned that a query may list again, with their `created_at`.
    recent: BTreeMap<CallId, Timestamp>,
    /// The walk under way, once its first page has been taken.
    #[serde(default)]
    walk: Option<Walk>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Walk {
    paging: Paging,
    /// What the watermark becomes when the walk ends.
    goal: Option<Timestamp>,
    /// Where this pass over the list is.
    #[serde(default)]
    place: Option<Place>,
    /// Where an earlier pass of the same walk had to stop, if there was one.
    #[serde(default)]
    frontier: Option<Place>,
}

/// The last call of a pass: everything with a later `started_at` has been passed, and these ids
/// with the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    started_at: Timestamp,
    ids: BTreeSet<CallId>,
}

/// What a page brought.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "save both, together"]
pub struct SyncStep {
    /// The calls that no step before has returned, newest first.
    pub fresh: Vec<Call>,
    /// The state to save together with them, and to go on from.
    pub next: CallSync,
}

/// Why a page could not be taken. The state is what it was, and the page may be asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// There is no way on from this page.
    #[error(transparent)]
    Paging(#[from] PagingError),
    /// A call started after the one before it in the list, so this page is not the one that was
    /// asked for, or the service does not order the list by `started_at`. Whether the call has
    /// been returned before cannot be told.
    #[error("call {index} of the page started after the one before it in the list")]
    Order {
        /// Which call on the page, from 0.
        index: usize,
    },
}

impl CallSync {
    /// A sync of all calls there are and will be, from the first one on.
    #[must_use]
    pub fn new() -> Self {
        Self { lag: DEFAULT_LAG, since: None, watermark: None, recent: BTreeMap::new(), walk: None }
    }

    /// A sync of the calls written at this instant or later.
    #[must_use]
    pub fn since(instant: Timestamp) -> Self {
        Self { since: Some(instant), ..Self::new() }
    }

    /// The same sync with another lag: longer than the service ever takes from the beginning of
    /// the transaction that writes a call until every answer shows it.
    ///
    /// Choose it at the beginning. A lag made longer later may return calls again that were
    /// returned between the old lag and the new one below the watermark.
    #[must_use]
    pub fn with_lag(self, lag: Duration) -> Self {
        Self { lag, ..self }
    }

    /// Up to where everything is known, a lag excepted; `None` before the first walk has ended.
    #[must_use]
    pub fn watermark(&self) -> Option<Timestamp> {
        self.watermark
    }

    /// Whether a walk has begun and there are pages left to take.
    #[must_use]
    pub fn is_walking(&self) -> bool {
        self.walk.is_some()
    }

    /// How many ids it keeps.
    #[must_use]
    pub fn ids(&self) -> usize {
        let places = self.walk.iter().flat_map(|walk| [&walk.place, &walk.frontier]);
        let ids = places.flatten().map(|place| place.ids.len());
        ids.fold(self.recent.len(), usize::saturating_add)
    }

    /// What to ask the service next: the walk's next page, or the first page of a new walk.
    ///
    /// The limit may be changed from page to page. The window may not.
    #[must_use]
    pub fn query(&self) -> ListCalls {
        // There is no upper bound, so the bounds cannot be the wrong way round.
        let window = CreatedRange::new(self.listed_from(), None).unwrap_or(CreatedRange::ALL);
        let query = ListCalls::new().with_limit(Limit::MAX).with_created(window);
        match self.walk.as_ref().and_then(|walk| walk.paging.cursor()) {
            Some(cursor) => query.with_cursor(cursor),
            None => query,
        }
    }

    /// Takes the answer to [`query`](Self::query): which calls are fresh, and the state after it.
    ///
    /// The state may have [taken a call](Self::take_call) since it was asked; the walk is the same.
    /// `now` is looked at on a walk's first page only.
    ///
    /// # Errors
    /// The page does not go on from the one before. Nothing has changed then; the same query may
    /// be made again.
    pub fn take(&self, page: &CallList, now: Timestamp) -> Result<SyncStep, SyncError> {
        let mut next = self.clone();
        let mut walk = next.walk.take().unwrap_or_else(|| self.begin(page, now));
        let kept_from = self.kept_from(&walk);
        let mut fresh = Vec::new();
        for (index, call) in page.data.iter().enumerate() {
            if walk.place.as_ref().is_some_and(|place| call.started_at > place.started_at) {
                if next.is_known(call) {
                    continue;
                }
                return Err(SyncError::Order { index });
            }
            let known = next.is_known(call) || walk.has_passed(call, kept_from);
            walk.place = Some(Place::reach(walk.place.take(), call));
            if known {
                continue;
            }
            if kept_from.is_none_or(|from| call.created_at >= from) {
                next.recent.insert(call.id.clone(), call.created_at);
            }
            fresh.push(call.clone());
        }
        match walk.paging.turn(page)? {
            Turn::Next(paging) => next.walk = Some(Walk { paging, ..walk }),
            Turn::End => {
                next.watermark = walk.goal;
                next.recent
                    .retain(|_, created_at| kept_from.is_none_or(|from| *created_at >= from));
            }
        }
        Ok(SyncStep { fresh, next })
    }

    /// Takes a call that came in another way, such as the event `call.ended`. `None` if it has been
    /// returned before; otherwise it is fresh, and here is the state to save together with it: no
    /// walk will return it. Its id is kept until the watermark has passed it, so walk now and then.
    ///
    /// A call written before the instant that this is a sync [since](Self::since) is fresh each time
    /// it comes: no walk returns it, and nothing is kept of it.
    #[must_use]
    pub fn take_call(&self, call: &Call) -> Option<Self> {
        if self.since.is_some_and(|since| call.created_at < since) {
            // No walk returns it, so there is nothing to remember.
            return Some(self.clone());
        }
        let passed = |walk: &Walk| walk.has_passed(call, self.kept_from(walk));
        if self.is_known(call) || self.walk.as_ref().is_some_and(passed) {
            return None;
        }
        let mut next = self.clone();
        next.recent.insert(call.id.clone(), call.created_at);
        Some(next)
    }

    /// The same walk from its first page on, for when the service does not take the cursor any
    /// more (`invalid_cursor`). No call that it has returned is returned again. Count how often, for a
    /// service that never takes its own cursors would be asked for ever.
    #[must_use]
    pub fn restarted(&self) -> Self {
        let walk = self.walk.as_ref().map(|walk| Walk {
            paging: Paging::start(),
            goal: walk.goal,
            place: None,
            frontier: Place::further(walk.place.clone(), walk.frontier.clone()),
        });
        Self { walk, ..self.clone() }
    }

    fn begin(&self, page: &CallList, now: Timestamp) -> Walk {
        let written = page.data.iter().map(|call| call.created_at);
        let goal = written.filter(|created_at| *created_at <= now).max().max(self.watermark);
        Walk { paging: Paging::start(), goal, place: None, frontier: None }
    }

    /// The `created_after` of this walk.
    fn listed_from(&self) -> Option<Timestamp> {
        let from = self.watermark.map(|watermark| watermark.saturating_sub(self.lag));
        from.max(self.since)
    }

    /// The `created_after` of the next one, and so of the ids to keep.
    fn kept_from(&self, walk: &Walk) -> Option<Timestamp> {
        walk.goal.map(|goal| goal.saturating_sub(self.lag))
    }

    /// Whether it was returned by an earlier walk, is remembered, or was not asked for at all.
    fn is_known(&self, call: &Call) -> bool {
        let outside = self.listed_from().is_some_and(|from| call.created_at < from);
        outside || self.recent.contains_key(&call.id)
    }
}

impl Default for CallSync {
    fn default() -> Self {
        Self::new()
    }
}

impl Walk {
    /// Whether this walk has returned a call that is not remembered.
    ///
    /// A call written a lag or more before the walk began was visible all the time, so if it stands
    /// before the place that was reached, it has been returned. Ids are remembered of the others.
    fn has_passed(&self, call: &Call, kept_from: Option<Timestamp>) -> bool {
        let old = kept_from.is_some_and(|from| call.created_at < from);
        [&self.place, &self.frontier].into_iter().flatten().any(|place| {
            place.ids.contains(&call.id) || (old && call.started_at > place.started_at)
        })
    }
}

impl Place {
    fn reach(place: Option<Self>, call: &Call) -> Self {
        let started_at = call.started_at;
        let mut ids = match place {
            Some(place) if place.started_at == started_at => place.ids,
            _ => BTreeSet::new(),
        };
        ids.insert(call.id.clone());
        Self { started_at, ids }
    }

    /// The place further down the list.
    fn further(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (mut one, other) = match (one, other) {
            (Some(one), Some(other)) => (one, other),
            (one, other) => return one.or(other),
        };
        match one.started_at.cmp(&other.started_at) {
            Ordering::Less => Some(one),
            Ordering::Greater => Some(other),
            Ordering::Equal => {
                one.ids.extend(other.ids);
                Some(one)
            }
        }
    }
}
