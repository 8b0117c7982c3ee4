//! What one late result of a dead sender does: a sender is taken for dead while its request is
//! unanswered, another sends again, and the failure of the first comes before the success of the
//! second.
//!
//! Of the durable host, the chaos test makes hundreds: `cargo test --test chaos -- --kills 1000`.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use webhooksmith::WebhookEngine;

use crate::server::Server;

/// A receiver whose answers are the caller's to give.
struct Receiver(TcpListener);

impl Receiver {
    /// The connection of the next request, read as far as it comes at once.
    async fn request(&self) -> TcpStream {
        let (mut stream, _) = self.0.accept().await.expect("a connection");
        let mut read = [0; 16 * 1024];
        let _ = stream.read(&mut read).await.expect("a request");
        stream
    }
}

async fn answer(mut stream: TcpStream, status: &str) {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("answered");
}

async fn engine(url: &str) -> Arc<WebhookEngine> {
    let engine = WebhookEngine::builder()
        .database_url(url)
        .allow_insecure_urls()
        .poll_interval(Duration::from_millis(20))
        .build()
        .await
        .expect("an engine");
    Arc::new(engine)
}

/// What `webhooksmith` makes of it: what it stored after each answer.
pub(crate) async fn of_smith(server: &mut Server) -> Vec<String> {
    let database = server.database().await;
    let (first, second) = (engine(&database.url).await, engine(&database.url).await);
    first.migrate().await.expect("tables");
    let receiver = Receiver(TcpListener::bind("127.0.0.1:0").await.expect("a port"));
    let url = format!("http://{}/hook", receiver.0.local_addr().expect("an address"));
    let insert = "WITH new AS (
            INSERT INTO webhook_endpoints (url, signing_secret)
            VALUES ($1, 'a secret of thirty-two characters')
            RETURNING id)
        INSERT INTO webhook_events (endpoint_id, event_type, payload)
        SELECT id, 'ping', '{}'::jsonb FROM new";
    database.client.execute(insert, &[&url]).await.expect("inserted");
    let stored = async |after: &str| {
        // What an answer leads to is stored long before.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let read = "SELECT status::text, attempts::bigint FROM webhook_events";
        let row = database.client.query_one(read, &[]).await.expect("its row");
        format!("{after}: {}, attempts {}", row.get::<_, String>(0), row.get::<_, i64>(1))
    };
    let mut told = Vec::new();

    let dead = Arc::clone(&first);
    let dead = tokio::spawn(async move { dead.run().await });
    let late = receiver.request().await;
    second.recover_stuck_deliveries(Duration::ZERO).await.expect("put back");
    let other = Arc::clone(&second);
    let other = tokio::spawn(async move { other.run().await });
    let again = receiver.request().await;
    answer(late, "500 Internal Server Error").await;
    told.push(stored("after the late 500").await);
    answer(again, "204 No Content").await;
    told.push(stored("after the 204").await);
    let third = tokio::time::timeout(Duration::from_secs(60), receiver.request()).await;
    if let Ok(third) = third {
        answer(third, "204 No Content").await;
        told.push(stored("after a third request, and its 204").await);
    }
    dead.abort();
    other.abort();
    told
}
