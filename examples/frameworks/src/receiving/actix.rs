//! actix-web has header types of an older `http`, so the names and the values are passed as text
//! and bytes.

use actix_web::http::StatusCode;
use actix_web::web::{self, Bytes, Data, PayloadConfig, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use call_assistant::Product;
use call_assistant::webhook::DeliveryHeaders;

use super::{Hooks, LONGEST_BODY, now};

/// Returns the argument of `App::new().configure(configure(hooks))`.
pub fn configure(hooks: Hooks) -> impl FnOnce(&mut ServiceConfig) {
    move |app| {
        app.app_data(Data::new(hooks))
            .app_data(PayloadConfig::new(LONGEST_BODY))
            .route("/hooks", web::post().to(receive));
    }
}

async fn receive(hooks: Data<Hooks>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let pairs = request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let headers = DeliveryHeaders::from_pairs(&Product::default(), pairs);
    let status = match hooks.verifier.receive_parts(headers, &body, now()) {
        Ok(receipt) => hooks.keep(receipt, &body).into_status(),
        Err(refused) => refused.response().into_status(),
    };
    let status = StatusCode::from_u16(status.as_u16());
    HttpResponse::new(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
}
