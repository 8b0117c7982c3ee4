//! hyper, for `service_fn(|request| receive(&hooks, request))`: store, answer, handle later.

use std::convert::Infallible;

use call_assistant::webhook::WebhookResponse;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt as _, Empty, Limited};

use super::{Hooks, LONGEST_BODY, now};

type Answer = Response<Empty<&'static [u8]>>;

/// # Errors
/// None, because every request gets an answer.
pub async fn receive<B>(hooks: &Hooks, request: Request<B>) -> Result<Answer, Infallible>
where
    B: Body<Error: std::error::Error + Send + Sync + 'static>,
{
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, LONGEST_BODY).collect().await else {
        return Ok(WebhookResponse::Rejected.into_response()); // too long, or broken off
    };
    let body = body.to_bytes();
    Ok(match hooks.verifier.receive(&head.headers, &body, now()) {
        Ok(receipt) => hooks.keep(receipt, &body).into_response(),
        Err(refused) => refused.into_response(),
    })
}
