//! A walk through the list, from its first page to its last.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::cursors::{Cursors, PagingError};
use crate::Timestamp;
use crate::id::CallId;
use crate::json::stored_object;
use crate::model::{Call, CallList, ListedCall, UnreadableCall};

stored_object! {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub(super) struct Walk {
        #[serde(rename = "paging")]
        cursors: Cursors,
        /// The last call of this pass over the list.
        place: Option<Place>,
        /// The furthest place of the earlier passes, if there were any.
        frontier: Option<Place>,
    }
}

stored_object! {
    /// The last call of a pass. The pass has read all calls with a later `started_at`, and the calls
    /// `ids` with the same `started_at`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Place {
        started_at: Timestamp,
        ids: BTreeSet<CallId>,
    }
}

/// The new items of a page, and whether there is a next page.
pub(super) type Fresh = (Vec<Call>, Vec<UnreadableCall>, bool);
impl Walk {
    pub(super) fn new(cursor: Option<String>) -> Self {
        Self { cursors: Cursors::new(cursor), place: None, frontier: None }
    }

    pub(super) fn cursor(&self) -> Option<&str> {
        self.cursors.cursor.as_deref()
    }

    /// Moves past a page. `is_new` returns whether an item is new; `None` if the item cannot follow the
    /// previous item.
    pub(super) fn read(
        &mut self,
        page: &CallList,
        mut is_new: impl FnMut(&mut Self, &ListedCall) -> Option<bool>,
    ) -> Result<Fresh, PagingError> {
        let depth = self.depth();
        let (mut calls, mut unreadable) = (Vec::new(), Vec::new());
        for (index, item) in page.data.iter().enumerate() {
            match (is_new(self, item).ok_or(PagingError::Order { index })?, item) {
                (false, _) => {}
                (true, ListedCall::Call(call)) => calls.push(call.clone()),
                (true, ListedCall::Unreadable(item)) => unreadable.push(item.clone()),
            }
        }
        let is_further = self.depth() != depth || !unreadable.is_empty();
        let goes_on = self.cursors.follow(page, is_further)?;
        Ok((calls, unreadable, goes_on))
    }

    /// Moves past a call. Returns whether the call is new; `None` if the call cannot follow the previous
    /// call.
    ///
    /// If a pass has passed the place of a settled call, the call has been returned. For a call that is
    /// not settled, only the kept ids show this.
    pub(super) fn pass(&mut self, call: &Call, is_known: bool, is_settled: bool) -> Option<bool> {
        if self.place.as_ref().is_some_and(|place| place.is_below(call)) {
            return is_known.then_some(false);
        }
        let is_known = is_known || self.has_passed(call, is_settled);
        self.place = Some(Place::reach(self.place.take(), call));
        Some(!is_known)
    }

    /// Returns whether this pass or an earlier one has passed a call.
    pub(super) fn has_passed(&self, call: &Call, is_settled: bool) -> bool {
        let mut places = [&self.place, &self.frontier].into_iter().flatten();
        places.any(|place| place.has_passed(call, is_settled))
    }

    pub(super) fn is_above_frontier(&self, call: &Call) -> bool {
        self.frontier.as_ref().is_some_and(|place| place.has_passed(call, true))
    }

    pub(super) fn reached(&self) -> Option<Timestamp> {
        self.place.as_ref().map(|place| place.started_at)
    }

    pub(super) fn frontier(&self) -> Option<Timestamp> {
        self.frontier.as_ref().map(|place| place.started_at)
    }

    pub(super) fn is_at_start(&self) -> bool {
        self.place.is_none() && self.frontier.is_none()
    }

    pub(super) fn restarted(&self) -> Self {
        Self {
            cursors: Cursors::default(),
            place: None,
            frontier: Place::further(self.place.clone(), self.frontier.clone()),
        }
    }

    pub(super) fn ids(&self) -> usize {
        let places = [&self.place, &self.frontier].into_iter().flatten();
        places.map(|place| place.ids.len()).fold(0, usize::saturating_add)
    }

    fn depth(&self) -> Option<(Timestamp, usize)> {
        self.place.as_ref().map(|place| (place.started_at, place.ids.len()))
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

    fn has_passed(&self, call: &Call, is_settled: bool) -> bool {
        self.ids.contains(&call.id) || (is_settled && self.is_below(call))
    }

    fn is_below(&self, call: &Call) -> bool {
        call.started_at > self.started_at
    }

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

/// The key by which an unreadable item is recognised: its id, or else the SHA-256 of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct UnreadableKey(String);

impl UnreadableKey {
    pub(super) fn new(item: &UnreadableCall) -> Self {
        Self(match item.id() {
            Some(id) => alloc::format!("id:{}", id.as_str()),
            None => alloc::format!("sha256:{}", hex::encode(Sha256::digest(item.json().get()))),
        })
    }
}
