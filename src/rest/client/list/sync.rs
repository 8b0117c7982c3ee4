use alloc::collections::BTreeMap;
use core::time::Duration;

use super::sync_walk::SyncWalk;
use super::walk::{UnreadableKey, Walk};
use super::{Batch, FlowError, PagingError, bind};
use crate::Timestamp;
use crate::id::{AccountId, CallId};
use crate::json::stored_object;
use crate::model::{Call, CallList, ListedCall, UnreadableCall};
use crate::rest::{CallFilter, ListCalls, Mode};

stored_object! {
    /// The state of a sync, which keeps your copy of all calls of an account up to date.
    ///
    /// Store the state together with the calls, as JSON or in another serde format with field names.
    ///
    /// ```
    /// use call_assistant::rest::client::CallSync;
    /// # use call_assistant::model::{Call, CallList};
    /// # use call_assistant::{id::CallId, rest::ListCalls, Timestamp};
    /// # let now = Timestamp::from_unix(1_784_887_200).unwrap();
    /// # let call = Call::new(CallId::parse("call_1").unwrap(), now, now);
    /// # let page = CallList::new(vec![call], None);
    /// # let ask = |_: ListCalls| (page.clone(), None);
    /// # let mut rows = 0;
    ///
    /// let mut sync = CallSync::new(); // or the state stored last
    /// loop {
    ///     let (page, date) = ask(sync.query()); // `date` is `ResponseHead::date`
    ///     let step = sync.apply(&page, date, now)?;
    ///     rows += step.calls.len(); // one transaction: the calls, and `step.next`
    ///     for item in &step.unreadable {
    ///         eprintln!("{} cannot be read: {}", item.json(), item.error()); // store it, too
    ///     }
    ///     sync = step.next;
    ///     if !sync.is_walking() {
    ///         break; // up to date: walk again in a while
    ///     }
    /// }
    /// # assert_eq!(rows, 1);
    /// # assert_eq!(sync.apply(&ask(sync.query()).0, None, now)?.calls, []);
    /// # Ok::<(), call_assistant::rest::client::PagingError>(())
    /// ```
    ///
    /// # Promise
    ///
    /// **Store the returned calls and the next state in one transaction.** Then every call is processed
    /// exactly once, even after a crash, and regardless of the order in which the service writes and
    /// shows calls. This is true if the delay of each call is at most the lag (a minute by default).
    /// The delay begins with the transaction that writes the call, and ends when every answer shows the
    /// call. The delay includes the delays of replicas, and the differences between the clocks of the
    /// service's machines.
    ///
    /// If the service's database loses the latest calls, the service may write a lost call again, with a
    /// later `created_at` than before. If the service writes the call again within the lag, the sync
    /// does not return the call again.
    ///
    /// If your store has no transactions, first store the calls by id, and then store the state. After a
    /// crash between the two writes, the sync returns the same calls again. Storing a call again changes
    /// nothing, because a call never changes.
    ///
    /// [`apply`](Self::apply) returns a new state and keeps the old state, so the same page can be
    /// applied again. Two workers can share a sync if each worker replaces the stored state only if it
    /// is still the state that this worker has read.
    ///
    /// # Items that cannot be read
    ///
    /// An unreadable item of a page does not stop the sync. The sync returns the item once, as an
    /// [`UnreadableCall`], and recognises the item by its id or, without a readable id, by the SHA-256
    /// of its bytes. When the service has repaired the item, the sync returns the item as a new call.
    ///
    /// # Why a watermark alone loses calls
    ///
    /// `created_at` is the instant at which the service *began* to write a call. A call becomes visible
    /// a little after this instant, perhaps after calls with a later `created_at`. The list is ordered
    /// by `started_at`, so a new call can appear on a page that was already read. Therefore a sync
    /// stores a *watermark*, a `created_at` of its last walk, and follows three rules:
    ///
    /// 1. **Ask from below the watermark.** The `created_after` of a query is the watermark minus the
    ///    lag (a minute by default). The state keeps the ids of the returned calls that were written at
    ///    or after this instant. The sync never returns these calls again.
    /// 2. **The watermark stops where the walk began.** The watermark becomes the largest `created_at`
    ///    *on the first page*. All calls written at least a lag before this `created_at` were visible
    ///    during the whole walk. A later page may show a call that was written after the walk began. If
    ///    the watermark moved to the `created_at` of this call, other new calls on the pages already
    ///    read would be lost.
    /// 3. **The watermark moves only after the last page**, never before.
    ///
    /// # Clocks
    ///
    /// The `Date` of the first page shows the service's time when the walk began. The sync does not
    /// trust a `created_at` later than this `Date`. Otherwise, after one call dated to the year 9999,
    /// the sync would find no more calls. If an answer has no `Date`, the sync uses `now` instead. If
    /// answers have a `Date`, the customer's clock need not be right. Without a `Date`, calls can be
    /// lost if the customer's clock is fast and the service also dates a call ahead of the service's
    /// clock. No call is lost if the customer's clock is slow.
    ///
    /// If the customer's clock is slow and the answers have no `Date`, the first page may show only
    /// calls whose `created_at` is not trusted. Then the watermark does not move. When the customer's
    /// clock has passed the largest `created_at` of the first page, the next walk moves the watermark to
    /// this `created_at`. Until then, each walk reads the same calls again, returns no call twice, and
    /// keeps the id of each returned call. If a first page has no calls and no `Date`, but leads to a
    /// next page, the watermark also does not move.
    ///
    /// # Size
    ///
    /// Even for a long history, the state contains little more than a position in the list and the
    /// ids of the calls within the lag below the watermark. The state grows by about 100 bytes for
    /// each of these items:
    ///
    /// - each call that is returned while the watermark does not move
    /// - each call that started at the same instant as the last call read
    /// - each unreadable item, until the watermark minus the lag is later than the item's
    ///   `created_at`
    ///
    /// If 1,200 calls were written in one minute, the state has about 90 KB until the watermark has
    /// moved on.
    ///
    /// A later version of this crate reads the states of earlier versions.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CallSync {
        #[serde(deserialize_with = "crate::json::read_stored")]
        lag: Duration,
        /// The mode of the key with which the sync was begun.
        #[serde(skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        #[serde(skip_serializing_if = "Option::is_none")]
        account_id: Option<AccountId>,
        since: Option<Timestamp>,
        /// The watermark. All calls written at least a lag before the watermark have been returned,
        /// except calls written before `since`.
        watermark: Option<Timestamp>,
        /// The returned calls that a query may list again, with the `created_at` of each call.
        recent: BTreeMap<CallId, Timestamp>,
        /// A `created_at` that the clock had not reached. When the clock has reached this instant, the
        /// instant becomes the watermark.
        kept: Option<Timestamp>,
        /// The returned unreadable items, each with its `created_at`. If an item has no `created_at`,
        /// the value is a time after the walk that last showed the item, and `None` during that walk.
        unreadable: BTreeMap<UnreadableKey, Option<Timestamp>>,
        /// The current walk, after its first page has been applied.
        walk: Option<SyncWalk>,
    }
    check: CallSync::check
}

impl CallSync {
    /// The longest lag: 24 hours. The state keeps the ids of all calls within the lag.
    pub const MAX_LAG: Duration = Duration::from_secs(24 * 60 * 60);

    /// Creates a sync of all calls, from the first call on.
    #[must_use]
    pub fn new() -> Self {
        Self {
            lag: Duration::from_secs(60),
            mode: None,
            account_id: None,
            since: None,
            watermark: None,
            recent: BTreeMap::new(),
            kept: None,
            unreadable: BTreeMap::new(),
            walk: None,
        }
    }

    /// Creates a sync of the calls written at this instant or later.
    #[must_use]
    pub fn since(instant: Timestamp) -> Self {
        Self { since: Some(instant), ..Self::new() }
    }

    /// Returns the same sync with another lag. The lag must be longer than the longest time from
    /// the start of the transaction that writes a call until every answer shows the call.
    ///
    /// Choose the lag when you create the sync. If you extend the lag later, the sync may again return
    /// calls that were written before the watermark minus the old lag.
    ///
    /// A lag above [`MAX_LAG`](Self::MAX_LAG) is reduced to `MAX_LAG`.
    #[must_use]
    pub fn with_lag(self, lag: Duration) -> Self {
        Self { lag: lag.min(Self::MAX_LAG), ..self }
    }

    /// Returns the watermark. All calls written at least a lag before the watermark have been
    /// returned. The watermark is `None` until the first walk has ended.
    #[must_use]
    pub fn watermark(&self) -> Option<Timestamp> {
        self.watermark
    }

    /// Returns whether a walk has begun and has pages left.
    #[must_use]
    pub fn is_walking(&self) -> bool {
        self.walk.is_some()
    }

    /// Returns how many ids the state keeps, including the ids of unreadable items.
    #[must_use]
    pub fn ids(&self) -> usize {
        let walk = self.walk.as_ref().map_or(0, |walk| walk.list.ids());
        [self.recent.len(), self.unreadable.len()].into_iter().fold(walk, usize::saturating_add)
    }

    /// Returns the next query, which requests the walk's next page or the first page of a new walk.
    ///
    /// You may change the limit of each query, but not the filter.
    #[must_use]
    pub fn query(&self) -> ListCalls {
        let filter = CallFilter { created_after: self.listed_from(), ..CallFilter::new() };
        let query = ListCalls::new().with_limit(ListCalls::MAX_LIMIT).with_filter(filter);
        match self.walk.as_ref().and_then(|walk| walk.list.cursor()) {
            Some(cursor) => query.with_cursor(cursor),
            None => query,
        }
    }

    /// Applies the answer to [`query`](Self::query). Returns the calls that were not yet returned,
    /// and the state after the page.
    ///
    /// `date` is the answer's `Date` header, [`ResponseHead::date`](super::super::ResponseHead::date).
    /// The sync does not trust a `created_at` later than `date`. If `date` is `None`, the sync uses
    /// `now` instead. For `now`, pass the time at which the page was requested, because a `created_at`
    /// after the request may be false. You may [take a call](Self::take_call) between the request and
    /// `apply`.
    ///
    /// # Errors
    /// Returns an error if the page does not follow the previous page. The error does not change the
    /// state, and the same query can be made again. If the error persists, continue from the
    /// [restarted](Self::restarted) state. A flow restarts its walk itself.
    pub fn apply(
        &self,
        page: &CallList,
        date: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Batch<Self>, PagingError> {
        let mut next = self.clone();
        let clock = date.unwrap_or(now);
        let begin = || SyncWalk::new(self.watermark, self.kept, date, clock);
        let mut walk = next.walk.take().unwrap_or_else(begin);
        walk.look(page, clock);
        let goal = walk.goal;
        let (calls, unreadable, goes_on) = walk.list.read(page, |list, item| match item {
            ListedCall::Call(call) => next.pass(list, goal, call),
            ListedCall::Unreadable(item) => Some(next.note(item)),
        })?;
        match goes_on {
            true => next.walk = Some(walk),
            false => next.complete(&walk, clock),
        }
        Ok(Batch { calls, unreadable, next })
    }

    /// Takes a call that arrived outside a walk, for example in the event `call.ended`. Returns `None`
    /// if the call has been returned before. Otherwise returns the new state. Store the call together
    /// with this state. Then no walk returns the call. The state keeps the call's id until the
    /// watermark minus the lag is later than the call. Run a walk regularly, so that the state stays
    /// small. Pass the state to a running flow with
    /// [`Flow::continue_from`](super::super::Flow::continue_from).
    ///
    /// For a call written before the [beginning](Self::since) of this sync, returns a state each
    /// time the call arrives. No walk returns such a call, and the state does not keep its id.
    #[must_use]
    pub fn take_call(&self, call: &Call) -> Option<Self> {
        if self.since.is_some_and(|since| call.created_at < since) {
            // No walk returns it, so there is nothing to remember.
            return Some(self.clone());
        }
        let passed = |walk: &SyncWalk| walk.list.has_passed(call, self.settles(walk.goal, call));
        if self.is_known(call) || self.walk.as_ref().is_some_and(passed) {
            return None;
        }
        let mut next = self.clone();
        next.recent.insert(call.id.clone(), call.created_at);
        Some(next)
    }

    /// Returns the same walk, beginning again at its first page. Use this function if the service
    /// no longer accepts the cursor (`invalid_cursor`). The walk returns no call a second time.
    /// Limit the number of restarts, because a service that never accepts its own cursors would
    /// cause an endless loop.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self { walk: self.walk.as_ref().map(SyncWalk::restarted), ..self.clone() }
    }

    pub(in crate::rest::client) fn bind(
        &mut self,
        mode: Option<Mode>,
        account: Option<&AccountId>,
    ) -> Result<(), FlowError> {
        if let Some(mode) = mode {
            bind(&mut self.mode, mode, FlowError::OtherMode)?;
        }
        match account {
            Some(account) => bind(&mut self.account_id, account.clone(), FlowError::OtherAccount),
            None => Ok(()),
        }
    }

    pub(in crate::rest::client) fn bind_like(&mut self, other: &Self) -> Result<(), FlowError> {
        self.bind(other.mode, other.account_id.as_ref())
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.lag > Self::MAX_LAG { Err("lag is more than a day") } else { Ok(()) }
    }

    fn listed_from(&self) -> Option<Timestamp> {
        let from = self.watermark.map(|watermark| watermark.saturating_sub(self.lag));
        from.max(self.since)
    }

    /// Returns whether a call was returned by an earlier walk, is in `recent`, or was not
    /// requested.
    fn is_known(&self, call: &Call) -> bool {
        let outside = self.listed_from().is_some_and(|from| call.created_at < from);
        outside || self.recent.contains_key(&call.id)
    }

    /// Returns whether the id of this call can be removed. A call that was written more than a lag
    /// before the walk was visible during the whole walk. Therefore the call's place in the list shows
    /// whether the call was returned.
    fn settles(&self, goal: Option<Timestamp>, call: &Call) -> bool {
        goal.is_some_and(|goal| call.created_at < goal.saturating_sub(self.lag))
    }

    fn pass(&mut self, list: &mut Walk, goal: Option<Timestamp>, call: &Call) -> Option<bool> {
        let is_settled = self.settles(goal, call);
        let is_new = list.pass(call, self.is_known(call), is_settled)?;
        if is_settled {
            // Its place says from now on that it has been returned.
            self.recent.remove(&call.id);
        } else if is_new || self.recent.contains_key(&call.id) {
            // A call that was lost and written again has a later `created_at` now.
            self.recent.insert(call.id.clone(), call.created_at);
        }
        Some(is_new)
    }

    /// Returns whether an unreadable item is fresh.
    fn note(&mut self, item: &UnreadableCall) -> bool {
        let returned = |id: &CallId| self.recent.contains_key(id);
        let returned = item.id().is_some_and(returned);
        !returned && self.unreadable.insert(UnreadableKey::new(item), item.created_at()).is_none()
    }

    fn complete(&mut self, walk: &SyncWalk, clock: Timestamp) {
        self.watermark = walk.goal;
        self.kept = walk.kept.filter(|kept| Some(*kept) > walk.goal);
        let shown = self.watermark.max(self.kept).max(Some(clock));
        if let Some(from) = self.watermark.map(|watermark| watermark.saturating_sub(self.lag)) {
            self.recent.retain(|_, created_at| *created_at >= from);
            // What this walk has shown, the next one may show again.
            self.unreadable.retain(|_, until| until.is_none_or(|until| until >= from));
        }
        for until in self.unreadable.values_mut() {
            *until = until.or(shown);
        }
    }
}

impl Default for CallSync {
    fn default() -> Self {
        Self::new()
    }
}
