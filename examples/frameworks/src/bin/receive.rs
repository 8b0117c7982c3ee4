//! The program that README begins with, from the first `use` on.
#![allow(clippy::disallowed_methods, reason = "a host has a clock")]

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::{Router, extract::State, http::HeaderMap, response::Response, routing::post};
use call_assistant::webhook::{Verifier, WebhookResponse};

type Hooks = (Verifier, Mutex<rusqlite::Connection>);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = rusqlite::Connection::open("events.db")?;
    db.execute("CREATE TABLE IF NOT EXISTS events (account, id, body, UNIQUE (account, id))", ())?;
    let verifier = Verifier::new(std::env::var("WEBHOOK_SECRET")?.parse()?);
    let app =
        Router::new().route("/hooks", post(receive)).with_state(Arc::new((verifier, db.into())));
    let listen = std::env::var("LISTEN").unwrap_or("127.0.0.1:3000".into());
    Ok(axum::serve(tokio::net::TcpListener::bind(listen).await?, app).await?)
}

async fn receive(State(hooks): State<Arc<Hooks>>, headers: HeaderMap, body: Bytes) -> Response {
    let (verifier, db) = &*hooks;
    let response = match verifier.receive(&headers, &body, std::time::SystemTime::now().into()) {
        Ok(receipt) => {
            let row = (receipt.key().account(), receipt.key().id(), &body[..]); // as received
            match db.lock().unwrap().execute("INSERT OR IGNORE INTO events VALUES (?, ?, ?)", row) {
                Ok(_) => receipt.stored(),              // 204: it is not sent again
                Err(_) => WebhookResponse::Unavailable, // 503: it is sent again
            }
        }
        Err(error) => error.response(), // 400; log the error: it says what is wrong
    };
    response.into_response()
}
