//! A plain loop: what any queue over SKIP LOCKED does, without HTTP and without a library.

use std::sync::Arc;

use tokio_postgres::Client;

use super::{Tasks, message};
use crate::server::{Database, connect};

const CONNECTIONS: usize = 4;

const CLAIM: &str = "UPDATE jobs SET status = 'sending', at = now() + interval '30 s'
    WHERE id = ANY (ARRAY (
        SELECT id FROM jobs WHERE status = 'waiting' AND at <= now()
        ORDER BY at LIMIT 64 FOR UPDATE SKIP LOCKED))
    RETURNING id, body";

const FINISH: &str =
    "UPDATE jobs SET status = 'delivered', attempts = attempts + 1 WHERE id = ANY ($1)";

#[derive(Debug)]
pub(crate) struct Plain {
    client: Client,
    connections: Vec<Arc<Client>>,
    pub(super) tasks: Tasks,
}

impl Plain {
    pub(super) async fn prepare(database: &Database) -> Self {
        let tables = "CREATE TABLE jobs (
                id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, status text NOT NULL,
                at timestamptz NOT NULL, attempts smallint NOT NULL, body text NOT NULL);
            CREATE INDEX jobs_due ON jobs (at) WHERE status IN ('waiting', 'sending')";
        let client = connect(&database.url).await;
        client.batch_execute(tables).await.expect("tables");
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            connections.push(Arc::new(connect(&database.url).await));
        }
        Self { client, connections, tasks: Tasks::default() }
    }

    pub(super) async fn insert(&mut self, count: u32) {
        let bodies: Vec<String> = (0..count).map(|_| message()).collect();
        let insert = "INSERT INTO jobs (status, at, attempts, body)
            SELECT 'waiting', now(), 0, body FROM unnest($1::text[]) AS body";
        self.client.execute(insert, &[&bodies]).await.expect("inserted");
    }

    pub(super) fn start(&mut self) {
        for client in &self.connections {
            let client = Arc::clone(client);
            self.tasks.spawn(async move {
                let claim = client.prepare(CLAIM).await.expect("prepared");
                let finish = client.prepare(FINISH).await.expect("prepared");
                loop {
                    let claimed = client.query(&claim, &[]).await.expect("claimed");
                    if claimed.is_empty() {
                        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                        continue;
                    }
                    let ids: Vec<i64> = claimed.iter().map(|row| row.get(0)).collect();
                    client.execute(&finish, &[&ids]).await.expect("finished");
                }
            });
        }
    }

    pub(super) async fn pending(&self) -> i64 {
        let pending = "SELECT count(*) FROM jobs WHERE status IN ('waiting', 'sending')";
        self.client.query_one(pending, &[]).await.expect("counted").get(0)
    }
}
