//! `webhooksmith`, at the best settings found: batches of 256 over 64 connections. Batches of 50
//! (its default) and 1,000, and 20 (its default) and 128 connections were slower.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::Client;
use webhooksmith::WebhookEngine;

use super::message;
use crate::server::{Database, connect};

const BATCH: i64 = 256;
const CONNECTIONS: u32 = 64;

pub(crate) struct Smith {
    client: Client,
    url: String,
    engine: Arc<WebhookEngine>,
    worker: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Smith {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Smith").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Smith {
    pub(super) async fn prepare(database: &Database, urls: &[&str]) -> Self {
        let engine = WebhookEngine::builder()
            .database_url(&database.url)
            .allow_insecure_urls()
            .batch_size(BATCH)
            .max_connections(CONNECTIONS)
            .poll_interval(Duration::from_millis(5))
            .http_timeout(Duration::from_secs(10))
            .build()
            .await
            .expect("an engine");
        engine.migrate().await.expect("tables");
        let client = connect(&database.url).await;
        client
            .batch_execute("CREATE TABLE numbers (number integer PRIMARY KEY, id uuid NOT NULL)")
            .await
            .expect("a table");
        for (number, url) in urls.iter().enumerate() {
            let number = i32::try_from(number).expect("a few");
            let insert = "WITH new AS (
                    INSERT INTO webhook_endpoints (url, signing_secret)
                    VALUES ($2, 'a secret of thirty-two characters')
                    RETURNING id)
                INSERT INTO numbers SELECT $1, id FROM new";
            client.execute(insert, &[&number, url]).await.expect("inserted");
        }
        let (url, engine) = (database.url.clone(), Arc::new(engine));
        Self { client, url, engine, worker: None }
    }

    /// As its own `send_in_tx` does, for many at a time.
    pub(super) async fn insert(&mut self, count: u32, endpoints: Range<u32>) {
        let (mut payloads, mut numbers) = (Vec::new(), Vec::new());
        for (_, endpoint) in (0..count).zip(endpoints.cycle()) {
            payloads.push(serde_json::json!({ "message": message() }).to_string());
            numbers.push(i32::try_from(endpoint).expect("a few"));
        }
        let insert = "INSERT INTO webhook_events (endpoint_id, event_type, payload)
            SELECT numbers.id, 'ping', payload::jsonb
            FROM unnest($1::integer[], $2::text[]) AS new (number, payload)
            JOIN numbers USING (number)";
        self.client.execute(insert, &[&numbers, &payloads]).await.expect("inserted");
    }

    pub(super) async fn start(&mut self) {
        let engine = Arc::clone(&self.engine);
        self.worker = Some(tokio::spawn(async move {
            engine.run().await;
        }));
    }

    pub(super) async fn pending(&self) -> i64 {
        let pending = "SELECT count(*) FROM webhook_events WHERE status <> 'delivered'";
        self.client.query_one(pending, &[]).await.expect("counted").get(0)
    }

    pub(super) async fn stop(self) {
        if let Some(worker) = self.worker {
            worker.abort();
            let _ = worker.await;
        }
        self.engine.pool().close().await;
    }
}
