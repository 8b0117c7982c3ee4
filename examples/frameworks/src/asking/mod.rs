//! Reading the API.
//!
//! The loop that executes the steps of a flow is [`run`] in blocking code, and [`run_async`] in async
//! code. Both loops read an account, a list and a sync over any of the four HTTP clients. Each client
//! is one function.
//!
//! Each HTTP client has a time limit for the whole request, and a limit for the length of an answer.
//! No client follows redirects, because a redirect would send the key to another server.

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use call_assistant::rest::client::{Flow, FlowError, FlowTask, Step};
use http::{Request, Response};

use crate::receiving::now;

pub mod hyper;
pub mod reqwest_async;
pub mod reqwest_blocking;
pub mod ureq;

/// The result of a request: an answer, or the HTTP client's error.
pub type Answer = Result<Response<Vec<u8>>, Box<dyn Error + Send + Sync>>;

/// Executes the steps of a flow until its end. `store` stores a batch in one transaction.
///
/// # Errors
/// The flow ends with an error, or `store` returns an error.
pub fn run<T: FlowTask, E: From<FlowError>>(
    mut flow: Flow<T>,
    mut send: impl FnMut(Request<()>, Duration) -> Answer,
    mut store: impl FnMut(&T::Batch) -> Result<(), E>,
) -> Result<T::Output, E> {
    loop {
        match flow.next(random(), now()) {
            Step::Send { request, time_limit, ticket } => {
                flow.report(ticket, send(request, time_limit), now());
            }
            Step::Wait(until) => sleep(until.since(now())),
            Step::Store(batch) => store(batch).map(|()| flow.stored())?,
            Step::Done(result) => return Ok(result?),
        }
    }
}

/// Executes the steps of a flow until its end, like [`run`].
///
/// # Errors
/// The flow ends with an error, or `store` returns an error.
pub async fn run_async<T: FlowTask, E: From<FlowError>>(
    mut flow: Flow<T>,
    mut send: impl AsyncFnMut(Request<()>, Duration) -> Answer,
    mut store: impl AsyncFnMut(&T::Batch) -> Result<(), E>,
) -> Result<T::Output, E> {
    loop {
        match flow.next(random(), now()) {
            Step::Send { request, time_limit, ticket } => {
                flow.report(ticket, send(request, time_limit).await, now());
            }
            Step::Wait(until) => tokio::time::sleep(until.since(now())).await,
            Step::Store(batch) => store(batch).await.map(|()| flow.stored())?,
            Step::Done(result) => return Ok(result?),
        }
    }
}

/// Returns eight random bytes, so that programs that failed at the same time do not retry at the same
/// time.
#[must_use]
pub fn random() -> [u8; 8] {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(()).to_ne_bytes()
}
