//! One account's calls in one mode, found by page, by id and by when they were written.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use call_assistant::Timestamp;
use call_assistant::id::CallId;
use call_assistant::model::Call;
use call_assistant::rest::server::CallsQuery;

use host::store::{Done, Refused};

/// Calls, ordered as they are listed.
#[derive(Debug, Default)]
pub struct Calls {
    rows: BTreeMap<(Timestamp, CallId), Call>,
    started: HashMap<CallId, Timestamp>,
    written: BTreeMap<Timestamp, Vec<CallId>>,
}

/// A window with at most so many calls is read from the index of when calls were written, and put
/// in order; a wider one is read in order, and finds what it seeks soon.
const NARROW: usize = 1024;

/// The most calls that are looked at for a page: 5,000.
const WALKED: usize = 5_000;

impl Calls {
    /// Adds a call. A call that is stored never changes.
    ///
    /// # Errors
    /// One with this id exists already.
    pub fn add(&mut self, call: Call) -> Done<()> {
        if self.started.contains_key(&call.id) {
            return Err(Refused::Conflict("a call with this id already exists".into()));
        }
        self.started.insert(call.id.clone(), call.started_at);
        self.written.entry(call.created_at).or_default().push(call.id.clone());
        self.rows.insert((call.started_at, call.id.clone()), call);
        Ok(())
    }

    /// Returns the call of this id.
    pub fn find(&self, id: &CallId) -> Option<&Call> {
        let started_at = *self.started.get(id)?;
        self.rows.get(&(started_at, id.clone()))
    }

    /// Returns the rows of a page, newest first, and the place that was reached if it is not full and more are left:
    /// O(log n) to the first of them, and one step for each; and one for each call that is newer than a wide window of
    /// `created_before`.
    pub fn page(&self, query: &CallsQuery) -> (Vec<Call>, Option<(Timestamp, CallId)>) {
        let filter = query.filter();
        if filter.selects_nothing() {
            return (Vec::new(), None);
        }
        if filter.created_after.is_some() || filter.created_before.is_some() {
            let from = filter.created_after.map_or(Bound::Unbounded, Bound::Included);
            let to = filter.created_before.map_or(Bound::Unbounded, Bound::Excluded);
            let inside = self.written.range((from, to)).flat_map(|(_, ids)| ids);
            let few: Vec<&CallId> = inside.take(NARROW).collect();
            if few.len() < NARROW {
                let mut rows: Vec<&Call> = few.into_iter().filter_map(|id| self.find(id)).collect();
                rows.retain(|call| query.matches_call(call));
                rows.sort_unstable_by(|a, b| b.list_order().cmp(&a.list_order()));
                return (rows.into_iter().take(query.rows_to_read()).cloned().collect(), None);
            }
        }
        let end = match query.after() {
            Some((started_at, id)) => Bound::Excluded((started_at, id.clone())),
            None => Bound::Unbounded,
        };
        let (mut found, mut walked_to) = (Vec::new(), None::<&(Timestamp, CallId)>);
        for (walked, (place, call)) in self.rows.range((Bound::Unbounded, end)).rev().enumerate() {
            if walked == WALKED {
                return (found, walked_to.cloned());
            }
            if query.matches_call(call) {
                found.push(call.clone());
            }
            if found.len() == query.rows_to_read() {
                break;
            }
            walked_to = Some(place);
        }
        (found, None)
    }

    /// Returns the calls after a place, newest first.
    pub fn after(&self, place: Option<(Timestamp, CallId)>) -> impl Iterator<Item = &Call> {
        let end = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.rows.range((Bound::Unbounded, end)).rev().map(|(_, call)| call)
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}
