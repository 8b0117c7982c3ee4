//! A walk through the list, from its first page to its last.

use alloc::collections::BTreeSet;
use alloc::string::String;
use core::cmp::Ordering;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Timestamp;
use crate::id::CallId;
use crate::model::{Call, CallList, UnreadableCall};
use crate::rest::client::paging::{Cursors, PagingError};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Walk {
    #[serde(rename = "paging")]
    cursors: Cursors,
    /// What the watermark becomes when the walk ends.
    goal: Option<Timestamp>,
    /// See [`CallSync::kept`](super::CallSync).
    #[serde(default)]
    kept: Option<Timestamp>,
    /// There while no page has shown a call.
    #[serde(default)]
    opening: Option<Opening>,
    /// Where this pass over the list is.
    #[serde(default)]
    place: Option<Place>,
    /// Where an earlier pass of the same walk had to stop, if there was one.
    #[serde(default)]
    frontier: Option<Place>,
}

/// How a walk began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Opening {
    /// The `Date` of the first page.
    date: Option<Timestamp>,
    /// Whether the first page is still to be looked at.
    first: bool,
}

/// The last call of a pass: everything with a later `started_at` has been passed, and these ids
/// with the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::rest::client) struct Place {
    started_at: Timestamp,
    ids: BTreeSet<CallId>,
}

impl Walk {
    /// A walk whose first page is about to be looked at.
    pub(super) fn new(
        watermark: Option<Timestamp>,
        kept: Option<Timestamp>,
        date: Option<Timestamp>,
        latest: Timestamp,
    ) -> Self {
        let passed = kept.filter(|kept| *kept <= latest);
        Self {
            cursors: Cursors::default(),
            goal: watermark.max(passed),
            kept: kept.filter(|_| passed.is_none()),
            opening: Some(Opening { date, first: true }),
            place: None,
            frontier: None,
        }
    }

    /// Looks for the time at which the walk began: `created_at` is never later than now at the
    /// service.
    pub(super) fn look(&mut self, page: &CallList, latest: Timestamp) {
        let written = || page.calls().map(|call| call.created_at);
        let (Some(Opening { date, first }), Some(largest)) = (self.opening, written().max()) else {
            self.opening = self.opening.map(|opening| Opening { first: false, ..opening });
            return;
        };
        self.opening = None;
        // Of a later page, only what was written before the first one came.
        let began = if first { Some(latest) } else { date };
        let believed = began.and_then(|began| written().filter(|at| *at <= began).max());
        self.goal = self.goal.max(believed);
        if believed.is_none() {
            // D-91: it bounds nothing yet. The earliest is kept, lest a year 9999 be waited for.
            self.kept = [Some(largest), date, self.kept].into_iter().flatten().min();
        }
    }

    pub(super) fn cursor(&self) -> Option<&str> {
        self.cursors.cursor.as_deref()
    }

    pub(super) fn goal(&self) -> Option<Timestamp> {
        self.goal
    }

    pub(super) fn kept(&self) -> Option<Timestamp> {
        self.kept.filter(|kept| Some(*kept) > self.goal)
    }

    pub(super) fn ids(&self) -> usize {
        let places = [&self.place, &self.frontier].into_iter().flatten();
        places.map(|place| place.ids.len()).fold(0, usize::saturating_add)
    }

    /// The walk at the page after this one; `None` if this was the last.
    pub(super) fn after(
        &self,
        page: &CallList,
        is_further: bool,
    ) -> Result<Option<Self>, PagingError> {
        let cursors = self.cursors.after(page, is_further)?;
        Ok(cursors.map(|cursors| Self { cursors, ..self.clone() }))
    }

    pub(super) fn restarted(&self) -> Self {
        Self {
            cursors: Cursors::default(),
            place: None,
            frontier: Place::further(self.place.clone(), self.frontier.clone()),
            ..self.clone()
        }
    }

    /// See [`Place::depth`].
    pub(super) fn depth(&self) -> Option<(Timestamp, usize)> {
        self.place.as_ref().map(Place::depth)
    }

    /// Whether a call cannot come after what this pass has reached.
    pub(super) fn is_above(&self, call: &Call) -> bool {
        self.place.as_ref().is_some_and(|place| place.is_below(call))
    }

    pub(super) fn reach(&mut self, call: &Call) {
        self.place = Some(Place::reach(self.place.take(), call));
    }

    /// Whether a call's place alone says if it has been returned, so that its id need not be kept:
    /// what was written a lag or more before the walk began was visible all the time.
    pub(super) fn settles(&self, call: &Call, lag: Duration) -> bool {
        self.goal.is_some_and(|goal| call.created_at < goal.saturating_sub(lag))
    }

    /// Whether this walk has returned a call that is not remembered.
    pub(super) fn has_passed(&self, call: &Call, lag: Duration) -> bool {
        let settled = self.settles(call, lag);
        [&self.place, &self.frontier].into_iter().flatten().any(|place| {
            place.ids.contains(&call.id) || (settled && call.started_at > place.started_at)
        })
    }
}

impl Place {
    pub(in crate::rest::client) fn reach(place: Option<Self>, call: &Call) -> Self {
        let started_at = call.started_at;
        let mut ids = match place {
            Some(place) if place.started_at == started_at => place.ids,
            _ => BTreeSet::new(),
        };
        ids.insert(call.id.clone());
        Self { started_at, ids }
    }

    /// Whether a call is before the place in the list, or at it.
    pub(in crate::rest::client) fn has_passed(&self, call: &Call) -> bool {
        self.is_below(call) || self.ids.contains(&call.id)
    }

    /// Whether a call started after the place.
    pub(in crate::rest::client) fn is_below(&self, call: &Call) -> bool {
        call.started_at > self.started_at
    }

    /// Where the place is, and how many calls are known there: changes with each step down.
    pub(in crate::rest::client) fn depth(&self) -> (Timestamp, usize) {
        (self.started_at, self.ids.len())
    }

    /// The place further down the list.
    pub(in crate::rest::client) fn further(one: Option<Self>, other: Option<Self>) -> Option<Self> {
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

/// What an unreadable item is recognised by: its id, or else the SHA-256 of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(in crate::rest::client) struct UnreadableKey(String);

impl UnreadableKey {
    pub(in crate::rest::client) fn new(item: &UnreadableCall) -> Self {
        Self(match item.id() {
            Some(id) => alloc::format!("id:{}", id.as_str()),
            None => alloc::format!("sha256:{}", hex::encode(Sha256::digest(item.json().get()))),
        })
    }
}
