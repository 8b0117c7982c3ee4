//! The first program of README, from the first `use` on.
#![allow(clippy::disallowed_methods, reason = "a host has a clock")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Bytes;
use axum::{Router, extract::State, http::HeaderMap, response::Response, routing::post};
use call_assistant::webhook::{Verifier, WebhookResponse};
use tokio::{sync::Mutex, task::spawn_blocking, time::timeout};

type Hooks = (Arc<Verifier>, Arc<Mutex<rusqlite::Connection>>);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = rusqlite::Connection::open("events.db")?;
    db.execute("CREATE TABLE IF NOT EXISTS events (account, id, body, UNIQUE (account, id))", ())?;
    let verifier = Verifier::new(std::env::var("WEBHOOK_SECRET")?.parse()?);
    let hooks: Hooks = (verifier.into(), Arc::new(db.into()));
    let app = Router::new().route("/hooks", post(receive)).with_state(hooks);
    let listen = std::env::var("LISTEN").unwrap_or("127.0.0.1:3000".into());
    Ok(axum::serve(tokio::net::TcpListener::bind(listen).await?, app).await?)
}

async fn receive(State(hooks): State<Hooks>, headers: HeaderMap, body: Bytes) -> Response {
    let (verifier, db) = hooks;
    let receipt = match verifier.receive(&headers, &body, SystemTime::now().into()) {
        Ok(receipt) => receipt,
        Err(error) => return error.into_response(), // 400; log the error: it says what is wrong
    };
    let key = receipt.key().clone();
    let insert = async {
        let db = db.lock_owned().await; // a delivery that waits here holds no thread
        let sql = "INSERT OR IGNORE INTO events VALUES (?, ?, ?)"; // the body as received
        spawn_blocking(move || db.execute(sql, (key.account(), key.id(), &body[..]))).await
    };
    let response = match timeout(Duration::from_millis(800), insert).await {
        Ok(Ok(Ok(_))) => receipt.stored(), // 204: it is not sent again
        _ => WebhookResponse::Unavailable, // 503: it is sent again
    };
    response.into_response()
}
