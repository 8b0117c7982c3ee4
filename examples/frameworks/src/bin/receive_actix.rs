//! A receiver with actix-web.
#![allow(clippy::disallowed_methods, reason = "a host has a clock")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use actix_web::http::StatusCode;
use actix_web::rt::{System, time::timeout};
use actix_web::web::{self, Bytes, Data, PayloadConfig};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use call_assistant::Product;
use call_assistant::webhook::{DeliveryHeaders, Verifier, WebhookResponse};
use tokio::sync::Mutex;

type Hooks = (Verifier, Arc<Mutex<rusqlite::Connection>>);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = rusqlite::Connection::open("events.db")?;
    db.execute("CREATE TABLE IF NOT EXISTS events (account, id, body, UNIQUE (account, id))", ())?;
    let verifier = Verifier::new(std::env::var("WEBHOOK_SECRET")?.parse()?);
    let hooks: Data<Hooks> = Data::new((verifier, Arc::new(db.into())));
    let app = move || {
        App::new()
            .app_data(hooks.clone())
            .app_data(PayloadConfig::new(2 * 1024 * 1024)) // more is answered 413
            .route("/hooks", web::post().to(receive))
    };
    let listen = std::env::var("LISTEN").unwrap_or("127.0.0.1:3000".into());
    Ok(System::new().block_on(HttpServer::new(app).bind(listen)?.run())?)
}

async fn receive(hooks: Data<Hooks>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let (verifier, db) = &**hooks;
    let pairs = request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let headers = DeliveryHeaders::from_pairs(&Product::default(), pairs);
    let receipt = match verifier.receive_parts(headers, &body, SystemTime::now().into()) {
        Ok(receipt) => receipt,
        Err(error) => {
            eprintln!("{error}"); // says what is wrong; the sender gets a 400 without a body
            return HttpResponse::BadRequest().finish();
        }
    };
    let (db, key) = (db.clone(), receipt.key().clone());
    let insert = async {
        let db = db.lock_owned().await; // a delivery that waits here holds no thread
        let sql = "INSERT OR IGNORE INTO events VALUES (?, ?, ?)"; // the body as received
        web::block(move || db.execute(sql, (key.account(), key.id(), &body[..]))).await
    };
    let response = match timeout(Duration::from_millis(800), insert).await {
        Ok(Ok(Ok(_))) => receipt.stored(), // 204, also for a copy
        _ => WebhookResponse::Unavailable, // 503: it is sent again
    };
    let status = StatusCode::from_u16(response.into_status().as_u16());
    HttpResponse::new(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
}
