use core::convert::Infallible;

use http::Request;

use super::FlowError;
use crate::Timestamp;
use crate::rest::client::{CallSync, Client, ResponseHead, SyncStep};
use crate::rest::{ApiRequest, ListCalls, Quota, UnsendableError};

/// Defines what a [`Flow`](super::Flow) does: [`Fetch`], [`Pages`](super::Pages) or [`Sync`], and
/// nothing else.
pub trait Task: sealed::Sealed + Sized {
    /// What the host stores before the flow goes on. [`Infallible`] if there is nothing to store.
    type Batch;

    /// What the flow ends with.
    type Output: Clone;

    #[doc(hidden)]
    const QUOTA: Quota;

    #[doc(hidden)]
    fn request(&self, client: &Client) -> Result<Request<()>, UnsendableError>;

    /// Leaves the task unchanged; [`stored`](Self::stored) moves it.
    #[doc(hidden)]
    fn apply(
        &self,
        client: &Client,
        head: ResponseHead<'_>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Applied<Self>, FlowError>;

    /// Moves the task past what was stored; `Some` if that was the last.
    #[doc(hidden)]
    fn stored(&mut self, batch: &Self::Batch) -> Option<Self::Output>;

    /// What the flow ends with if there is nothing to do from the beginning.
    #[doc(hidden)]
    fn finished(&self) -> Option<Self::Output> {
        None
    }

    /// The page to ask for, if this reads a list.
    #[doc(hidden)]
    fn list(&self) -> Option<ListCalls> {
        None
    }

    /// Restarts the list. `false` if there is none.
    #[doc(hidden)]
    fn restart(&mut self) -> bool {
        false
    }
}

/// Performs one operation. Created by [`Client::fetch`].
#[derive(Debug)]
pub struct Fetch<R>(pub(super) R);

impl<R: ApiRequest> sealed::Sealed for Fetch<R> {}

impl<R: ApiRequest> Task for Fetch<R> {
    type Batch = Infallible;
    type Output = R::Response;
    const QUOTA: Quota = R::OPERATION.quota();
    fn request(&self, client: &Client) -> Result<Request<()>, UnsendableError> {
        client.request(&self.0)
    }

    fn apply(
        &self,
        client: &Client,
        head: ResponseHead<'_>,
        body: &[u8],
        _: Timestamp,
    ) -> Result<Applied<Self>, FlowError> {
        Ok(Applied::Done(client.read(&self.0, head, body)?))
    }

    fn stored(&mut self, never: &Infallible) -> Option<R::Response> {
        match *never {}
    }
}

/// Brings a copy of all calls up to date. Created by [`Client::sync`].
#[derive(Debug)]
pub struct Sync {
    pub(super) state: CallSync,
    /// Whether the walk was begun by an earlier flow: it says nothing of what was written since.
    resumed: bool,
}

impl Sync {
    pub(super) fn new(state: CallSync) -> Self {
        Self { resumed: state.is_walking(), state }
    }
}

impl sealed::Sealed for Sync {}

impl Task for Sync {
    type Batch = SyncStep;
    type Output = ();
    const QUOTA: Quota = Quota::READS;
    fn request(&self, client: &Client) -> Result<Request<()>, UnsendableError> {
        client.request(&self.state.query())
    }

    fn apply(
        &self,
        client: &Client,
        head: ResponseHead<'_>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Applied<Self>, FlowError> {
        let page = client.read(&self.state.query(), head, body)?;
        let step = self.state.apply(&page, head.date(), now)?;
        let count = PageCount::new(&page, &step.calls, &step.unreadable);
        Ok(Applied::Store(step, count))
    }

    fn stored(&mut self, batch: &SyncStep) -> Option<()> {
        self.state = batch.next.clone();
        if self.state.is_walking() {
            return None;
        }
        let resumed = core::mem::take(&mut self.resumed);
        (!resumed).then_some(())
    }

    fn list(&self) -> Option<ListCalls> {
        Some(self.state.query())
    }

    fn restart(&mut self) -> bool {
        self.state = self.state.restarted();
        true
    }
}

/// What an answer has led to.
#[doc(hidden)]
#[allow(missing_debug_implementations)]
pub enum Applied<T: Task> {
    Done(T::Output),
    Store(T::Batch, PageCount),
}

/// What a page adds to the progress.
#[doc(hidden)]
#[derive(Debug)]
pub struct PageCount {
    pub(super) calls: u64,
    pub(super) unreadable: u64,
    pub(super) reached: Option<Timestamp>,
}

impl PageCount {
    pub(super) fn new<C, U>(page: &crate::model::CallList, calls: &[C], unreadable: &[U]) -> Self {
        let count = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
        Self {
            calls: count(calls.len()),
            unreadable: count(unreadable.len()),
            reached: page.calls().last().map(|call| call.started_at),
        }
    }
}

pub(super) mod sealed {
    pub trait Sealed {}
}
