//! AWS Lambda. If the gateway has encoded a body in base64, `lambda_http` has decoded the body
//! before this function runs.
//!
//! ```no_run
//! # use call_assistant_frameworks::{Hooks, receiving::lambda::receive};
//! # async fn main_of(hooks: Hooks) -> Result<(), lambda_http::Error> {
//! let hooks = &hooks;
//! lambda_http::run(lambda_http::service_fn(|request| async move { receive(hooks, &request) })).await
//! # }
//! ```

use lambda_http::{Body, Error, Request, Response};

use super::{Hooks, now};

pub fn receive(hooks: &Hooks, request: &Request) -> Result<Response<Body>, Error> {
    Ok(match hooks.verifier.receive(request.headers(), request.body(), now()) {
        Ok(receipt) => hooks.keep(receipt, request.body()).into_response(),
        Err(refused) => refused.into_response(),
    })
}
