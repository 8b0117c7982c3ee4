//! A naive host on this library: for each delivery one transaction to begin it and one to finish it.

use std::ops::Range;
use std::time::Duration;

use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    Delivery, EndpointHealth, EndpointUrl, Outcome, SignedDestination,
};
use call_assistant::webhook::{Signer, SigningSecret};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_postgres::{Client, Transaction};

use super::{Tasks, event, now};
use crate::server::{Database, connect};

const CONNECTIONS: usize = 16;

const SECRET: &str = "whsec_bm90IGEgc2VjcmV0IGF0IGFsbCwgcmVhbGx5IG5vdA==";

const DUE: &str = "SELECT d.id, d.endpoint, d.state, e.state, e.url, d.body, d.version
    FROM deliveries AS d JOIN endpoints AS e ON e.id = d.endpoint
    WHERE d.pending AND d.at <= now() ORDER BY d.at LIMIT 1 FOR UPDATE OF d SKIP LOCKED";

#[derive(Debug)]
pub(crate) struct Naive {
    client: Client,
    url: String,
    number: u64,
    pub(super) tasks: Tasks,
}

impl Naive {
    pub(super) async fn prepare(database: &Database, urls: &[&str]) -> Self {
        let tables = "CREATE TABLE endpoints (
                id integer PRIMARY KEY, url text NOT NULL, state text NOT NULL,
                version integer NOT NULL);
            CREATE TABLE deliveries (
                id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, endpoint integer NOT NULL,
                body bytea NOT NULL, state text NOT NULL, version integer NOT NULL,
                pending boolean NOT NULL, at timestamptz);
            CREATE INDEX deliveries_due ON deliveries (at) WHERE pending;
            CREATE TABLE attempts (
                delivery bigint NOT NULL, number smallint NOT NULL, outcome text NOT NULL,
                at timestamptz NOT NULL)";
        let client = connect(&database.url).await;
        client.batch_execute(tables).await.expect("tables");
        let state = serde_json::to_string(&EndpointHealth::new(0, now())).expect("JSON");
        for (id, url) in urls.iter().enumerate() {
            let id = i32::try_from(id).expect("a few");
            let insert = "INSERT INTO endpoints VALUES ($1, $2, $3, 0)";
            client.execute(insert, &[&id, url, &state]).await.expect("inserted");
        }
        Self { client, url: database.url.clone(), number: 0, tasks: Tasks::default() }
    }

    pub(super) async fn insert(&mut self, count: u32, endpoints: Range<u32>) {
        let (mut bodies, mut states, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        let healthy = EndpointHealth::new(0, now());
        for (at, endpoint) in (0..count).zip(endpoints.cycle()) {
            let event = event("acct_1", self.number + u64::from(at));
            let delivery = Delivery::accept(&event, &healthy, now());
            states.push(serde_json::to_string(&delivery).expect("JSON"));
            bodies.push(event.as_bytes().to_vec());
            ids.push(i32::try_from(endpoint).expect("a few"));
        }
        self.number += u64::from(count);
        let insert = "INSERT INTO deliveries (endpoint, body, state, version, pending, at)
            SELECT endpoint, body, state, 0, true, now()
            FROM unnest($1::integer[], $2::bytea[], $3::text[]) AS new (endpoint, body, state)";
        self.client.execute(insert, &[&ids, &bodies, &states]).await.expect("inserted");
    }

    pub(super) fn start(&mut self) {
        for _ in 0..CONNECTIONS {
            let url = self.url.clone();
            self.tasks.spawn(async move {
                let mut client = connect(&url).await;
                loop {
                    if !deliver_one(&mut client).await {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
            });
        }
    }

    pub(super) async fn pending(&self) -> i64 {
        let pending = "SELECT count(*) FROM deliveries WHERE pending";
        self.client.query_one(pending, &[]).await.expect("counted").get(0)
    }
}

fn delivery_of(id: i64, endpoint: i32, state: &str) -> Delivery {
    let columns = serde_json::from_str(state).expect("columns");
    Delivery::from_columns(id.cast_unsigned(), endpoint.cast_unsigned().into(), columns)
        .expect("ours")
}

fn endpoint_of(id: i32, state: &str) -> EndpointHealth {
    let columns = serde_json::from_str(state).expect("columns");
    EndpointHealth::from_columns(id.cast_unsigned().into(), columns).expect("ours")
}

/// False if nothing is due.
async fn deliver_one(client: &mut Client) -> bool {
    let begin = client.transaction().await.expect("begun");
    let Some(row) = begin.query_opt(DUE, &[]).await.expect("read") else { return false };
    let (id, endpoint_id, body): (i64, i32, Vec<u8>) = (row.get(0), row.get(1), row.get(5));
    let mut delivery = delivery_of(id, endpoint_id, row.get(2));
    let endpoint = endpoint_of(endpoint_id, row.get(3));
    let target = EndpointUrl::parse_allowing_loopback(row.get(4)).expect("a target");
    let version: i32 = row.get(6);
    let Ok(attempt) = delivery.begin(&endpoint, now()) else { return false };
    write(&begin, id, &delivery, version).await;
    begin.commit().await.expect("committed");

    let event = EventBody::from_stored(&body).expect("an event");
    let signer = Signer::new(SigningSecret::parse(SECRET).expect("a secret"));
    let destination = SignedDestination::new(&endpoint, target, signer);
    let request = attempt.request(&destination, &event, now()).expect("its endpoint's");
    let posted = tokio::time::timeout(Duration::from_secs(10), post(request)).await;
    let outcome = posted.unwrap_or(Outcome::TimedOut);

    let finish = client.transaction().await.expect("begun");
    let read = "SELECT state, version FROM deliveries WHERE id = $1 FOR UPDATE";
    let row = finish.query_one(read, &[&id]).await.expect("read");
    let mut delivery = delivery_of(id, endpoint_id, row.get(0));
    let version: i32 = row.get(1);
    let read = "SELECT state, version FROM endpoints WHERE id = $1";
    let row = finish.query_one(read, &[&endpoint_id]).await.expect("read");
    let mut endpoint = endpoint_of(endpoint_id, row.get(0));
    let before = endpoint;
    let report = delivery.finish(&attempt, outcome, now()).expect("its attempt");
    let _ = endpoint.record(report, now()).expect("its endpoint");
    write(&finish, id, &delivery, version).await;
    if endpoint != before {
        let state = serde_json::to_string(&endpoint).expect("JSON");
        let update = "UPDATE endpoints SET state = $2, version = version + 1 WHERE id = $1";
        finish.execute(update, &[&endpoint_id, &state]).await.expect("written");
    }
    let number = i16::from(attempt.number());
    let insert = "INSERT INTO attempts VALUES ($1, $2, $3, now())";
    let outcome = outcome.to_string();
    finish.execute(insert, &[&id, &number, &outcome]).await.expect("written");
    finish.commit().await.expect("committed");
    true
}

async fn write(transaction: &Transaction<'_>, id: i64, delivery: &Delivery, version: i32) {
    let state = serde_json::to_string(delivery).expect("JSON");
    let due = delivery.due(now()).map(|due| {
        let micros = u64::try_from(due.unix_micros()).expect("after 1970");
        std::time::SystemTime::UNIX_EPOCH + Duration::from_micros(micros)
    });
    let pending = delivery.is_pending();
    let update = "UPDATE deliveries SET state = $3, version = $2 + 1, pending = $4, at = $5
        WHERE id = $1 AND version = $2";
    let written = transaction.execute(update, &[&id, &version, &state, &pending, &due]).await;
    assert_eq!(written.expect("written"), 1, "its row is locked");
}

async fn post(request: hyper::Request<Vec<u8>>) -> Outcome {
    let authority = request.uri().authority().expect("a host").to_string();
    let answered = async {
        let stream = TcpStream::connect(&authority).await.ok()?;
        let _ = stream.set_nodelay(true);
        let (mut sender, connection) =
            http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.ok()?;
        let driver = tokio::spawn(connection);
        let mut request = request.map(Full::from);
        request.headers_mut().insert("host", authority.parse().ok()?);
        *request.uri_mut() = "/hook".parse().ok()?;
        let status = sender.send_request(request).await.ok()?.status();
        driver.abort();
        Some(status)
    };
    answered.await.map_or(Outcome::Reset, Outcome::Answered)
}
