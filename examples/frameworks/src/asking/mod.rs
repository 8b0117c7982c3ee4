//! Asking the API.
//!
//! A flow decides, a loop obeys: [`run`] in blocking code, [`run_async`] in async code. Either drives
//! an account, a list and a sync over any of the four HTTP clients, each of which is one function.
//!
//! Three things are the HTTP client's to do, in each of them: a time limit for the whole request, a
//! limit on how much of an answer is read, and no redirects, which would send the key elsewhere.

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

/// What an HTTP client says of a request: an answer, or none.
pub type Answer = Result<Response<Vec<u8>>, Box<dyn Error + Send + Sync>>;

/// Drives a flow to its end. `store` stores a batch in one transaction.
///
/// # Errors
/// The flow ends with an error, or `store` does.
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

/// Drives a flow to its end, as [`run`] does.
///
/// # Errors
/// The flow ends with an error, or `store` does.
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

/// Eight random bytes, so that programs that failed together do not come back together.
#[must_use]
pub fn random() -> [u8; 8] {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(()).to_ne_bytes()
}
