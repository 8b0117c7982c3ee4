use alloc::collections::BTreeSet;
use alloc::string::String;
use core::time::Duration;

use super::walk::{UnreadableKey, Walk};
use super::{Batch, FlowError, PagingError, bind};
use crate::Timestamp;
use crate::json::stored_object;
use crate::model::{Call, CallList, ListedCall, UnreadableCall};
use crate::rest::{ListCalls, Mode, ParameterError};

stored_object! {
    /// The state of a walk through all pages of a list. The walk returns each call once.
    ///
    /// To resume the walk after a restart of the program, store the state with the calls, as JSON or in
    /// another serde format with field names. [`Client::pages`](super::super::Client::pages) creates the
    /// flow that requests the pages.
    ///
    /// ```
    /// use call_assistant::rest::ListCalls;
    /// use call_assistant::rest::client::CallPages;
    /// # use call_assistant::model::CallList;
    /// # let mut pages = vec![CallList::new(vec![], None), CallList::new(vec![], Some("c1".into()))];
    /// # let mut send = |_: ListCalls| pages.pop().unwrap();
    ///
    /// let mut walk = CallPages::from(ListCalls::new()); // or the state stored last
    /// while !walk.is_done() {
    ///     let batch = walk.apply(&send(walk.query()))?;
    ///     for call in &batch.calls {
    ///         println!("{}", call.id);
    ///     }
    ///     walk = batch.next; // in one transaction: the calls, the unreadable items, and this
    /// }
    /// # assert!(pages.is_empty());
    /// # Ok::<(), call_assistant::rest::client::PagingError>(())
    /// ```
    ///
    /// The state is small. It contains the walk's position in the list, the ids of the calls that
    /// started at the instant of this position, and the keys of unreadable items near this position.
    /// Each id or key takes about 100 bytes. A later version of this crate reads the states of
    /// earlier versions.
    ///
    /// # The next page
    ///
    /// | `has_more` | `next_cursor` | |
    /// |---|---|---|
    /// | true or absent | a text | continue, also after an empty page |
    /// | false | anything | the end |
    /// | absent | none | the end |
    /// | true | none | an error, because stopping here would lose calls silently |
    ///
    /// An empty `next_cursor` is treated like a missing `next_cursor`. A repeated cursor is an error:
    /// see [`PagingError::Cycle`].
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CallPages {
        /// The list without its cursor.
        #[serde(with = "query_text")]
        list: ListCalls,
        walk: Walk,
        done: bool,
        /// The mode of the key with which the walk was begun.
        mode: Option<Mode>,
        /// Whether the list begins at a cursor.
        is_part: bool,
        /// The unreadable items that this pass has met since the pass reached the `started_at` of its
        /// place.
        tail: BTreeSet<UnreadableKey>,
        /// The unreadable items that earlier passes returned beyond the frontier and that this pass has
        /// not met.
        unmet: BTreeSet<UnreadableKey>,
        period: Option<Period>,
    }
}

stored_object! {
    /// The calls that started at or after the instant `from`, and before the instant `until`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Period {
        from: Timestamp,
        until: Timestamp,
        /// The instant, by the service's clock, from which all calls of the period can be read.
        complete_at: Timestamp,
    }
}

impl CallPages {
    /// The maximum number of pages in a row that do not advance a walk: 10,000. An empty page may lead
    /// to another page, but a walk must end.
    pub const MAX_EMPTY_PAGES: u32 = 10_000;

    /// Creates a walk through the calls that started at or after `from`, and before `until`.
    ///
    /// ```
    /// use core::time::Duration;
    /// use call_assistant::rest::client::{CallPages, Client};
    /// # let client = Client::new("https://api.example.com", "service_live_kept-where-secrets-are")?;
    /// let [from, until] = ["2026-07-24T00:00:00+02:00", "2026-07-25T00:00:00+02:00"];
    /// // No call lasts longer than four hours.
    /// let lag = Duration::from_secs(4 * 3_600);
    /// let day = CallPages::from_period(from.parse()?, until.parse()?, lag)?;
    /// let flow = client.pages(day);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The service writes a call after the call has ended, and only then can you read the call.
    /// Therefore a [flow](super::super::Client::pages) waits until `lag` has passed since `until`. As
    /// the current time, the flow uses the `Date` of an answer or, if the answer has no `Date`, `now`.
    /// Choose a lag that is longer than the longest call plus the time to write the call. If the service
    /// writes a call only after this lag, the walk may miss the call. A loop of your own must also wait
    /// for this lag.
    ///
    /// The list is read from the newest call to the first call that started before `from`. Therefore a
    /// walk through an old period also reads every call that started after the period. Each unreadable
    /// item that the walk meets is returned, because the item may belong to the period.
    ///
    /// # Errors
    /// Returns an error if `until` is earlier than `from`.
    pub fn from_period(
        from: Timestamp,
        until: Timestamp,
        lag: Duration,
    ) -> Result<Self, ParameterError> {
        if until < from {
            return Err(ParameterError::Period);
        }
        let period = Period { from, until, complete_at: until.saturating_add(lag) };
        let list = ListCalls::new().with_limit(ListCalls::MAX_LIMIT);
        Ok(Self { period: Some(period), ..Self::from(list) })
    }

    /// Returns whether all pages have been read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Returns the request for the next page.
    #[must_use]
    pub fn query(&self) -> ListCalls {
        ListCalls { cursor: self.walk.cursor().map(Into::into), ..self.list.clone() }
    }

    /// Applies the answer to [`query`](Self::query). Returns the new calls, and the state after the
    /// page.
    ///
    /// # Errors
    /// Returns an error if the page does not follow the previous page. The error does not change this
    /// state, and the same page can be requested again.
    pub fn apply(&self, page: &CallList) -> Result<Batch<Self>, PagingError> {
        let (mut next, mut walk) = (self.clone(), self.walk.clone());
        let (mut calls, unreadable, goes_on) = walk.read(page, |walk, item| match item {
            ListedCall::Call(call) => next.pass(walk, call),
            ListedCall::Unreadable(item) => Some(next.note(walk, item)),
        })?;
        (next.walk, next.done) = (walk, !goes_on);
        if let Some(Period { from, until, .. }) = next.period {
            calls.retain(|call| (from..until).contains(&call.started_at));
            next.done |= next.walk.reached().is_some_and(|reached| reached < from);
        }
        Ok(Batch { calls, unreadable, next })
    }

    /// Returns the same walk, beginning again at the first page. Use this function if the service no
    /// longer accepts the cursor (`invalid_cursor`). The walk returns no call again. Returns `None` if
    /// the list begins at a cursor and no call has been read, because the walk could not recognise the
    /// calls before the cursor.
    #[must_use]
    pub fn restarted(&self) -> Option<Self> {
        if self.is_part && self.walk.is_at_start() {
            return None;
        }
        let mut next = Self { walk: self.walk.restarted(), ..self.clone() };
        next.unmet.append(&mut next.tail);
        Some(next)
    }

    /// Returns how long to wait before the first page, until all calls of the period can be read.
    pub(in crate::rest::client) fn wait(&self, clock: Timestamp) -> Duration {
        let period = self.period.as_ref().filter(|_| self.walk.cursor().is_none());
        period.map_or(Duration::ZERO, |period| period.complete_at.since(clock))
    }

    pub(in crate::rest::client) fn bind(&mut self, mode: Mode) -> Result<(), FlowError> {
        bind(&mut self.mode, mode, FlowError::OtherMode)
    }

    fn pass(&mut self, walk: &mut Walk, call: &Call) -> Option<bool> {
        let reached = walk.reached();
        let is_new = walk.pass(call, walk.is_above_frontier(call), true)?;
        if walk.reached() != reached {
            self.tail.clear();
        }
        Some(is_new)
    }

    /// Returns whether an unreadable item is new.
    fn note(&mut self, walk: &Walk, item: &UnreadableCall) -> bool {
        let frontier = walk.frontier();
        if frontier.is_some() && walk.reached().is_none_or(|at| Some(at) > frontier) {
            return false;
        }
        let key = UnreadableKey::new(item);
        let is_known = self.unmet.remove(&key);
        self.tail.insert(key) && !is_known
    }
}

impl From<ListCalls> for CallPages {
    fn from(mut list: ListCalls) -> Self {
        let cursor = list.cursor.take();
        Self {
            is_part: cursor.is_some(),
            walk: Walk::new(cursor),
            list,
            done: false,
            mode: None,
            tail: BTreeSet::new(),
            unmet: BTreeSet::new(),
            period: None,
        }
    }
}

/// The stored form of a list: its query. The query is checked only when the list is read.
mod query_text {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use super::{ListCalls, String};

    pub(super) fn serialize<S: Serializer>(list: &ListCalls, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&list.unchecked_query())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ListCalls, D::Error> {
        ListCalls::from_query(&String::deserialize(from)?).map_err(de::Error::custom)
    }
}
