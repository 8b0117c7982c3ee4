use core::convert::Infallible;
use core::time::Duration;

use self::sealed::Run;
use crate::Timestamp;
use crate::model::CallList;
use crate::rest::client::{Batch, CallPages, CallSync, PagingError};
use crate::rest::{ApiRequest, ListCalls};

/// The task of a [`Flow`](super::Flow): one request, a [`CallPages`] or a [`CallSync`].
///
/// The trait is sealed.
pub trait FlowTask: Run<<Self as FlowTask>::Batch, <Self as FlowTask>::Output> {
    /// The value that the host stores before the flow continues. If the task has nothing to store, this
    /// type is [`Infallible`].
    type Batch;

    /// The result at the end of the flow.
    type Output: Clone;
}

/// The effect of an answer.
///
/// Closed: a flow handles each effect differently.
#[derive(Debug)]
pub enum Applied<B, O> {
    Done(O),
    Store(B, PageCount),
    /// The request was too early, and is repeated after this time.
    Wait(Duration),
}

/// The part of the progress that a page adds.
#[derive(Debug)]
pub struct PageCount {
    pub(super) calls: usize,
    pub(super) unreadable: usize,
    pub(super) reached: Option<Timestamp>,
}

impl<S> Applied<Batch<S>, ()> {
    fn store(page: &CallList, batch: Batch<S>) -> Self {
        let count = PageCount {
            calls: batch.calls.len(),
            unreadable: batch.unreadable.len(),
            reached: page.calls().last().map(|call| call.started_at),
        };
        Self::Store(batch, count)
    }
}

pub(super) mod sealed {
    use super::{ApiRequest, Applied, ListCalls, PagingError, Timestamp};

    /// The way in which a flow runs a task with batches `B` and output `O`.
    pub trait Run<B, O>: Sized {
        type Request: ApiRequest;

        /// Whether the task is done only after a second walk. The first walk may be the rest of an
        /// earlier flow's walk, which lacks the calls written since this walk began.
        const ENDS_TWICE: bool = false;

        fn asked(&self) -> Self::Request;

        /// Applies an answer. The task stays unchanged; [`store`](Self::store) changes the task.
        fn answered(
            &self,
            answer: <Self::Request as ApiRequest>::Response,
            date: Option<Timestamp>,
            now: Timestamp,
        ) -> Result<Applied<B, O>, PagingError>;

        fn store(&mut self, batch: &B);

        fn end(&self) -> Option<O> {
            None
        }

        fn list(&self) -> Option<ListCalls> {
            None
        }

        /// Restarts the list. Returns false if the list cannot be restarted.
        fn restart(&mut self) -> bool {
            false
        }
    }
}

impl<R: ApiRequest> FlowTask for R {
    type Batch = Infallible;
    type Output = R::Response;
}

impl<R: ApiRequest> Run<Infallible, R::Response> for R {
    type Request = R;

    fn asked(&self) -> R {
        self.clone()
    }

    fn answered(
        &self,
        answer: R::Response,
        _: Option<Timestamp>,
        _: Timestamp,
    ) -> Result<Applied<Infallible, R::Response>, PagingError> {
        Ok(Applied::Done(answer))
    }

    fn store(&mut self, never: &Infallible) {
        match *never {}
    }
}

impl FlowTask for CallPages {
    type Batch = Batch<Self>;
    type Output = ();
}

impl Run<Batch<Self>, ()> for CallPages {
    type Request = ListCalls;

    fn asked(&self) -> ListCalls {
        self.query()
    }

    fn answered(
        &self,
        page: CallList,
        date: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Applied<Batch<Self>, ()>, PagingError> {
        let wait = self.wait(date.unwrap_or(now));
        if !wait.is_zero() {
            return Ok(Applied::Wait(wait));
        }
        Ok(Applied::store(&page, self.apply(&page)?))
    }

    fn store(&mut self, batch: &Batch<Self>) {
        self.clone_from(&batch.next);
    }

    fn end(&self) -> Option<()> {
        self.is_done().then_some(())
    }

    fn list(&self) -> Option<ListCalls> {
        Some(self.query())
    }

    fn restart(&mut self) -> bool {
        self.restarted().map(|restarted| *self = restarted).is_some()
    }
}

impl FlowTask for CallSync {
    type Batch = Batch<Self>;
    type Output = ();
}

impl Run<Batch<Self>, ()> for CallSync {
    type Request = ListCalls;

    const ENDS_TWICE: bool = true;

    fn asked(&self) -> ListCalls {
        self.query()
    }

    fn answered(
        &self,
        page: CallList,
        date: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Applied<Batch<Self>, ()>, PagingError> {
        Ok(Applied::store(&page, self.apply(&page, date, now)?))
    }

    fn store(&mut self, batch: &Batch<Self>) {
        self.clone_from(&batch.next);
    }

    fn end(&self) -> Option<()> {
        (!self.is_walking()).then_some(())
    }

    fn list(&self) -> Option<ListCalls> {
        Some(self.query())
    }

    fn restart(&mut self) -> bool {
        *self = self.restarted();
        true
    }
}
