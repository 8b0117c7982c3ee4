use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use http::Request;
use serde::{Deserialize, Serialize};

use super::FlowError;
use super::task::{Applied, PageCount, Task, sealed};
use crate::Timestamp;
use crate::model::{Call, ListedCall, UnreadableCall};
use crate::rest::client::sync::{Place, UnreadableKey};
use crate::rest::client::{Client, Paging, PagingError, ResponseHead};
use crate::rest::{ListCalls, Mode, Quota, UnsendableError};

/// Reads all pages of a list. Created by [`Client::pages`].
#[derive(Debug)]
pub struct Pages(pub(super) PagesState);

/// Says where in a list a flow is. Store it with the calls, as JSON or in any form of serde, to
/// resume after a restart of the program.
///
/// It is small: a position in the list. The ids of calls that started at the same instant, and the
/// keys of unreadable items with no call between them, are kept together, at about 100 bytes each.
///
/// ```
/// use call_assistant::rest::ListCalls;
/// use call_assistant::rest::client::{Client, PagesState};
///
/// let client = Client::new("https://api.example.com", "service_live_kept-where-secrets-are")?;
/// let stored = serde_json::to_string(&PagesState::from(ListCalls::new()))?;
///
/// let resumed: PagesState = serde_json::from_str(&stored)?;
/// let flow = client.pages(resumed);
/// assert_eq!(flow.progress().pages, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagesState {
    /// The next page, or the last one if the list is done.
    paging: Paging,
    done: bool,
    /// Of the key that the list was begun with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
    /// Whether the list begins at a cursor, so that its first page is not what came before.
    #[serde(default)]
    is_part: bool,
    /// Where this pass over the list is.
    #[serde(default)]
    place: Option<Place>,
    /// Where the earlier passes had to stop.
    #[serde(default)]
    frontier: Option<Place>,
    /// The unreadable items since this pass reached the `started_at` of its place.
    #[serde(default)]
    tail: BTreeSet<UnreadableKey>,
    /// What earlier passes returned beyond the frontier and this one has not met.
    #[serde(default)]
    unmet: BTreeSet<UnreadableKey>,
}

/// Holds what a page brought, to store in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PagesStep {
    /// The calls, newest first.
    pub calls: Vec<Call>,
    /// The items that cannot be read as calls, whole and with the reason.
    pub unreadable: Vec<UnreadableCall>,
    /// The state to resume from.
    pub next: PagesState,
}

impl PagesState {
    /// Returns whether all pages have been read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done
    }

    pub(super) fn bind(&mut self, mode: Mode) -> Result<(), FlowError> {
        match *self.mode.get_or_insert(mode) == mode {
            true => Ok(()),
            false => Err(FlowError::OtherMode),
        }
    }

    /// Moves past a call. `None` if it cannot follow the previous one, otherwise whether it is new.
    fn pass(&mut self, call: &Call) -> Option<bool> {
        let passed = |place: &Option<Place>| place.as_ref().is_some_and(|it| it.has_passed(call));
        let is_known = passed(&self.frontier) || passed(&self.place);
        if self.place.as_ref().is_some_and(|place| place.is_below(call)) {
            return passed(&self.frontier).then_some(false);
        }
        let depth = self.depth();
        self.place = Some(Place::reach(self.place.take(), call));
        if self.depth().map(|(at, _)| at) != depth.map(|(at, _)| at) {
            self.tail.clear();
        }
        Some(!is_known)
    }

    /// Moves past an item that cannot be read. Returns whether it is new.
    fn pass_unreadable(&mut self, item: &UnreadableCall) -> bool {
        let [reached, frontier] =
            [&self.place, &self.frontier].map(|place| place.as_ref().map(|place| place.depth().0));
        let is_above = frontier.is_some() && reached.is_none_or(|at| Some(at) > frontier);
        let key = UnreadableKey::new(item);
        !is_above && {
            let is_known = self.unmet.remove(&key);
            self.tail.insert(key) && !is_known
        }
    }

    fn depth(&self) -> Option<(Timestamp, usize)> {
        self.place.as_ref().map(Place::depth)
    }
}

impl From<ListCalls> for PagesState {
    fn from(list: ListCalls) -> Self {
        Self {
            is_part: list.cursor.is_some(),
            paging: Paging::new(list),
            done: false,
            mode: None,
            place: None,
            frontier: None,
            tail: BTreeSet::new(),
            unmet: BTreeSet::new(),
        }
    }
}

impl sealed::Sealed for Pages {}

impl Task for Pages {
    type Batch = PagesStep;
    type Output = ();
    const QUOTA: Quota = Quota::READS;
    fn request(&self, client: &Client) -> Result<Request<()>, UnsendableError> {
        client.request(self.0.paging.list())
    }

    fn apply(
        &self,
        client: &Client,
        head: ResponseHead<'_>,
        body: &[u8],
        _: Timestamp,
    ) -> Result<Applied<Self>, FlowError> {
        let page = client.read(self.0.paging.list(), head, body)?;
        let mut next = self.0.clone();
        let (mut calls, mut unreadable) = (Vec::new(), Vec::new());
        for (index, item) in page.data.iter().enumerate() {
            match item {
                ListedCall::Call(call) => {
                    if next.pass(call).ok_or(PagingError::Order { index })? {
                        calls.push(call.clone());
                    }
                }
                ListedCall::Unreadable(item) => {
                    if next.pass_unreadable(item) {
                        unreadable.push(item.clone());
                    }
                }
            }
        }
        let is_further = next.depth() != self.0.depth() || !unreadable.is_empty();
        match next.paging.follow(&page, is_further)? {
            Some(paging) => next.paging = paging,
            None => next.done = true,
        }
        let count = PageCount::new(&page, &calls, &unreadable);
        Ok(Applied::Store(PagesStep { calls, unreadable, next }, count))
    }

    fn stored(&mut self, batch: &PagesStep) -> Option<()> {
        self.0 = batch.next.clone();
        self.finished()
    }

    fn finished(&self) -> Option<()> {
        self.0.done.then_some(())
    }

    fn list(&self) -> Option<ListCalls> {
        Some(self.0.paging.list().clone())
    }

    fn restart(&mut self) -> bool {
        let state = &mut self.0;
        if state.is_part && state.place.is_none() && state.frontier.is_none() {
            return false;
        }
        state.paging = state.paging.restarted();
        state.frontier = Place::further(state.place.take(), state.frontier.take());
        state.unmet.append(&mut state.tail);
        true
    }
}
