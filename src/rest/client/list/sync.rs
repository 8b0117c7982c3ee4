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
    /// A copy of all calls of an account, kept up to date without losing or repeating any.
    ///
    /// This is the state of the sync. Store it next to the calls, as JSON or in another form
    /// of serde that has names of fields.
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
    /// **Store the fresh calls and the next state in one transaction.** Then every call is processed
    /// exactly once, despite any crash, and in any order in which the service writes and shows calls.
    /// The one condition: from the start of the transaction that writes a call until every answer shows
    /// the call takes at most the lag. Delayed replicas, and clocks of the service's machines that
    /// differ, count into that.
    ///
    /// A service that lost a call, with the end of its database, may write it again with a later
    /// `created_at`. The call is not returned again if that is done within the lag.
    ///
    /// Without such transactions, store the calls first, by id, and then the state: a crash in between
    /// returns those calls once more, and storing a call again changes nothing, because a call never
    /// changes.
    ///
    /// A state is a value: [`apply`](Self::apply) leaves the old state as it is, and the same page can
    /// be applied again. Two workers can share a sync if each stores its next state only over the state
    /// that it has read.
    ///
    /// # Items that cannot be read
    ///
    /// An item of a page that is not a readable call does not stop the sync. The item is returned once, as an
    /// [`UnreadableCall`], and recognised by its id, or by the SHA-256 of its bytes if it has no
    /// readable id. Once the service has repaired such a call, the call is returned as fresh.
    ///
    /// # Why a watermark alone loses calls
    ///
    /// `created_at` is when the service *began* to write a call. A call becomes visible a little later,
    /// perhaps after calls with a later `created_at`; and the list is ordered by `started_at`, so a new
    /// call can appear anywhere in it, before or after the page that is being read. Hence three rules:
    ///
    /// 1. **Ask from below the watermark.** A query begins a lag (a minute by default) below it. The
    ///    ids of calls returned from there on are kept and never returned again.
    /// 2. **The watermark stops where the walk began.** It becomes the largest `created_at` *on the
    ///   first page*. All calls written a lag before that were visible during the whole walk. A
    ///   later page may show a call that is more recent than others that the walk has already
    ///   passed: moving the watermark there would lose calls.
    /// 3. **It moves only after the last page**, never before.
    ///
    /// # Clocks
    ///
    /// The first page shows the service's time when the walk began. A `created_at` later than the answer's
    /// `Date` is not believed, so that one call dated to the year 9999 does not end the sync. `now` replaces a
    /// missing `Date`. So no clock of the customer's has to be right where answers have a `Date`. Where they
    /// have none, a fast clock can lose calls if the service also dates a call ahead of its own clock. A slow
    /// clock loses no call.
    ///
    /// If the first page shows only calls that are not believed (the clock is slow, and there is no
    /// `Date`), the watermark stays. The largest `created_at` of that page becomes the watermark of a walk
    /// that begins after the clock has passed it. Until then each walk asks for the same again, returns
    /// nothing twice, and keeps the id of each call that it returns. The same holds if a first page without
    /// calls and without `Date` leads to a next page.
    ///
    /// # Size
    ///
    /// The state is small however long the history: a position in the list, and the ids within the lag
    /// below the watermark. A first sync of years of calls is a walk like any other, and continues
    /// where it stopped. In three cases the state grows, by about 100 bytes for each item: calls
    /// while the watermark stays as above, calls that all started at the same instant, and items that
    /// cannot be read, until the watermark is a lag past them. A copy of 1,200 calls in one minute has a
    /// state of about 90 KB until the watermark has moved on.
    ///
    /// A later version of this crate reads the states of earlier versions.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CallSync {
        #[serde(deserialize_with = "crate::json::read_stored")]
        lag: Duration,
        /// The mode of the key that the sync was begun with.
        #[serde(skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        /// The account, if the host has named it.
        #[serde(skip_serializing_if = "Option::is_none")]
        account_id: Option<AccountId>,
        since: Option<Timestamp>,
        /// The instant such that every call written a lag or more before it has been returned, but for
        /// those before `since`.
        watermark: Option<Timestamp>,
        /// The calls returned that a query may list again, with their `created_at`.
        recent: BTreeMap<CallId, Timestamp>,
        /// A `created_at` that no clock had reached. It becomes the watermark once one has.
        kept: Option<Timestamp>,
        /// The unreadable items returned, each with its `created_at`, or else a time after the walk
        /// that showed it last; `None` while that walk is under way.
        unreadable: BTreeMap<UnreadableKey, Option<Timestamp>>,
        /// The walk under way, once its first page has been applied.
        walk: Option<SyncWalk>,
    }
    check: CallSync::check
}

impl CallSync {
    /// The longest lag: 24 hours. The state keeps the ids of all calls within it.
    pub const MAX_LAG: Duration = Duration::from_secs(24 * 60 * 60);

    /// Creates a sync of all calls, from the first one on.
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

    /// Returns the same sync with another lag: longer than the service ever takes from the start of
    /// the transaction that writes a call until every answer shows it.
    ///
    /// Choose it at the beginning. A lag made longer later may return calls again that were
    /// returned between the old lag and the new one below the watermark.
    ///
    /// The longest is [`MAX_LAG`](Self::MAX_LAG), which a longer one counts as.
    #[must_use]
    pub fn with_lag(self, lag: Duration) -> Self {
        Self { lag: lag.min(Self::MAX_LAG), ..self }
    }

    /// Returns the watermark: all calls written a lag or more before it have been returned. `None`
    /// before the first walk has ended.
    #[must_use]
    pub fn watermark(&self) -> Option<Timestamp> {
        self.watermark
    }

    /// Returns whether a walk has begun and has pages left.
    #[must_use]
    pub fn is_walking(&self) -> bool {
        self.walk.is_some()
    }

    /// Returns how many ids the state keeps, those of unreadable items included.
    #[must_use]
    pub fn ids(&self) -> usize {
        let walk = self.walk.as_ref().map_or(0, |walk| walk.list.ids());
        [self.recent.len(), self.unreadable.len()].into_iter().fold(walk, usize::saturating_add)
    }

    /// Returns the next query: the walk's next page, or the first page of a new walk.
    ///
    /// The limit may be changed from page to page. The filter may not.
    #[must_use]
    pub fn query(&self) -> ListCalls {
        let filter = CallFilter { created_after: self.listed_from(), ..CallFilter::new() };
        let query = ListCalls::new().with_limit(ListCalls::MAX_LIMIT).with_filter(filter);
        match self.walk.as_ref().and_then(|walk| walk.list.cursor()) {
            Some(cursor) => query.with_cursor(cursor),
            None => query,
        }
    }

    /// Applies the answer to [`query`](Self::query): which calls are fresh, and the state after it.
    ///
    /// `date` is the answer's `Date` header,
    /// [`ResponseHead::date`](super::super::ResponseHead::date), which tells false dates from right
    /// ones; `now` does so only without a `Date`. Pass the time at which the page was asked for as
    /// `now`: an instant that was in the future then may be a false date. The state may have
    /// [taken a call](Self::take_call) since that time; the walk is the same.
    ///
    /// # Errors
    /// Returns an error if the page does not follow the previous one. Nothing has changed then; the
    /// same query can be made again. If the error lasts, continue from the state
    /// [restarted](Self::restarted), as a flow does by itself.
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

    /// Takes a call that came in another way, such as the event `call.ended`. `None` if the call
    /// has been returned before. Otherwise it is fresh, and this returns the state to store
    /// together with the call: no walk will return it. The id is kept until the watermark has
    /// passed the call, so walk now and then. A flow that is under way has to be told:
    /// [`Flow::continue_from`](super::super::Flow::continue_from).
    ///
    /// A call written before the [beginning](Self::since) of this sync is fresh each time it comes:
    /// no walk returns it, and its id is not kept.
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

    /// Returns the same walk from its first page on, for when the service no longer takes the
    /// cursor (`invalid_cursor`). No call is returned again. Count the restarts: a service that
    /// never takes its own cursors would be asked for ever.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self { walk: self.walk.as_ref().map(SyncWalk::restarted), ..self.clone() }
    }

    /// Binds the state to the mode and the account of a key, or refuses the key.
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

    /// Refuses a stored sync with a lag that no sync has.
    fn check(&self) -> Result<(), &'static str> {
        if self.lag > Self::MAX_LAG { Err("lag is more than a day") } else { Ok(()) }
    }

    /// Returns the `created_after` of this walk.
    fn listed_from(&self) -> Option<Timestamp> {
        let from = self.watermark.map(|watermark| watermark.saturating_sub(self.lag));
        from.max(self.since)
    }

    /// Returns whether a call was returned by an earlier walk, is remembered, or was not asked for.
    fn is_known(&self, call: &Call) -> bool {
        let outside = self.listed_from().is_some_and(|from| call.created_at < from);
        outside || self.recent.contains_key(&call.id)
    }

    /// Returns whether the id of this call can be forgotten. A call that was created more than a lag
    /// before the walk began was visible all the time, so its place alone tells whether it was returned.
    fn settles(&self, goal: Option<Timestamp>, call: &Call) -> bool {
        goal.is_some_and(|goal| call.created_at < goal.saturating_sub(self.lag))
    }

    /// Moves past a call. Returns whether it is new; `None` if it cannot follow the previous one.
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

    /// Notes that the walk has shown an unreadable item. Returns whether it is fresh.
    fn note(&mut self, item: &UnreadableCall) -> bool {
        let returned = |id: &CallId| self.recent.contains_key(id);
        let returned = item.id().is_some_and(returned);
        !returned && self.unreadable.insert(UnreadableKey::new(item), item.created_at()).is_none()
    }

    /// Ends the walk, after its last page.
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
