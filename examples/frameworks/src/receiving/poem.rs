//! poem.

use http::{HeaderMap, StatusCode};
use poem::web::Data;
use poem::{Body, EndpointExt as _, IntoEndpoint, Route, handler, post};

use super::{Hooks, LONGEST_BODY, now};

pub fn app(hooks: Hooks) -> impl IntoEndpoint {
    Route::new().at("/hooks", post(receive)).data(hooks)
}

#[handler]
async fn receive(Data(hooks): Data<&Hooks>, headers: &HeaderMap, body: Body) -> StatusCode {
    let Ok(body) = body.into_bytes_limit(LONGEST_BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE;
    };
    match hooks.verifier.receive(headers, &body, now()) {
        Ok(receipt) => hooks.keep(receipt, &body).into_status(),
        Err(refused) => refused.response().into_status(),
    }
}
