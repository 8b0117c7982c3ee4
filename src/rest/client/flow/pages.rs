use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use http::Request;
use serde::{Deserialize, Serialize};

use super::FlowError;
use super::task::{Applied, PageCount, Task, sealed};
use crate::Timestamp;
use crate::model::{Call, ListedCall, UnreadableCall};
use crate::rest::client::sync::{Place, UnreadableKey};
use crate::rest::client::{Client, Paging, ResponseHead};
use crate::rest::{ListCalls, Mode, Quota, UnsendableError};

/// Reads all pages of a list. Created by [`Client::pages`].
#[derive(Debug)]
pub struct Pages(pub(super) PagesState);

/// Says where in a list a flow is. Store it with the calls, as JSON or in any form of serde, to
/// resume after a restart of the program.
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
    /// The last call returned.
    #[serde(default)]
    place: Option<Place>,
    /// The unreadable items returned since the list reached that call's `started_at`.
    #[serde(default)]
    tail: BTreeSet<UnreadableKey>,
    /// Set after a restart, while the pages show what was returned before: whether they have come
    /// to the place.
    #[serde(default)]
    repeats: Option<bool>,
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

    /// Moves past a call. Returns whether it is new.
    fn pass(&mut self, call: &Call) -> bool {
        if let (Some(at_place), Some(place)) = (&mut self.repeats, &self.place)
            && place.has_passed(call)
        {
            *at_place |= place.is_at(call);
            return false;
        }
        self.repeats = None;
        if !self.place.as_ref().is_some_and(|place| place.is_at(call)) {
            self.tail.clear();
        }
        self.place = Some(Place::reach(self.place.take(), call));
        true
    }

    /// Moves past an item that cannot be read. Returns whether it is new.
    fn pass_unreadable(&mut self, item: &UnreadableCall) -> bool {
        let above_place = self.repeats == Some(false) && self.place.is_some();
        !above_place && self.tail.insert(UnreadableKey::new(item))
    }
}

impl From<ListCalls> for PagesState {
    fn from(list: ListCalls) -> Self {
        let paging = Paging::new(list);
        Self { paging, done: false, mode: None, place: None, tail: BTreeSet::new(), repeats: None }
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
        match next.paging.after(&page)? {
            Some(paging) => next.paging = paging,
            None => next.done = true,
        }
        let (mut calls, mut unreadable) = (Vec::new(), Vec::new());
        for item in &page.data {
            match item {
                ListedCall::Call(call) if next.pass(call) => calls.push(call.clone()),
                ListedCall::Unreadable(item) if next.pass_unreadable(item) => {
                    unreadable.push(item.clone());
                }
                _ => {}
            }
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
        self.0.paging = self.0.paging.restarted();
        self.0.repeats = Some(false);
        true
    }
}
