//! A plain host, as a good engineer writes it in a day: a pool, prepared statements, one statement each for
//! the key, the window and the page. A window does not wait for the disk.

use std::convert::Infallible;
use std::error::Error;
use std::fmt::Write as _;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio_postgres::{Config, NoTls};

use crate::server::connect;

const CONNECTIONS: usize = 16;

const TABLES: &str = "
    CREATE TABLE accounts (id text PRIMARY KEY, body text NOT NULL);
    CREATE TABLE keys (
        id text PRIMARY KEY, account_id text NOT NULL REFERENCES accounts (id),
        digest bytea NOT NULL UNIQUE, expires_at timestamptz, revoked_at timestamptz,
        scopes text[] NOT NULL);
    CREATE TABLE calls (
        account_id text NOT NULL REFERENCES accounts (id), id text NOT NULL,
        started_at text COLLATE \"C\" NOT NULL, body text NOT NULL, PRIMARY KEY (account_id, id));
    CREATE INDEX calls_in_time ON calls (account_id, started_at, id);
    CREATE TABLE windows (
        key_id text NOT NULL, quota text NOT NULL, admitted timestamptz[] NOT NULL,
        PRIMARY KEY (key_id, quota)) WITH (fillfactor = 50);";

const KEY: &str = "SELECT k.id, k.account_id, k.scopes, a.body
    FROM keys AS k JOIN accounts AS a ON a.id = k.account_id
    WHERE k.digest = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())";

/// A row where the request is admitted.
const ADMIT: &str = "INSERT INTO windows AS w VALUES ($1, $2, ARRAY[clock_timestamp()])
    ON CONFLICT (key_id, quota) DO UPDATE SET admitted = ARRAY(
        SELECT at FROM unnest(w.admitted) AS at WHERE at > clock_timestamp() - interval '1 minute'
    ) || clock_timestamp()
    WHERE cardinality(w.admitted) < $3
        OR w.admitted[cardinality(w.admitted) - $3 + 1] <= clock_timestamp() - interval '1 minute'
    RETURNING 1";

const PAGE: &str = "SELECT id, started_at, body FROM calls
    WHERE account_id = $1 AND (started_at, id) < ($2, $3)
    ORDER BY started_at DESC, id DESC LIMIT $4";

/// Creates the tables, and puts the accounts in.
pub(super) async fn prepare(url: &str, data: &Value) {
    let client = connect(url).await;
    client.batch_execute(TABLES).await.expect("tables");
    let rows = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for account in rows(&data["accounts"]) {
        let id = text(&account["id"]);
        let body = json!({ "id": id, "business_name": null, "timezone": "UTC" }).to_string();
        client.execute("INSERT INTO accounts VALUES ($1, $2)", &[&id, &body]).await.expect("added");
        for key in rows(&account["keys"]) {
            let digest = Sha256::digest(text(&key["secret"])).to_vec();
            let sql = "INSERT INTO keys VALUES ($1, $2, $3, NULL, NULL, '{calls:read}')";
            client.execute(sql, &[&text(&key["id"]), &id, &digest]).await.expect("added");
        }
        let calls = rows(&account["calls"]);
        let each = |of: fn(&Value) -> String| calls.iter().map(of).collect::<Vec<_>>();
        let ids = each(|call| call["id"].as_str().unwrap_or_default().to_owned());
        let times = each(|call| call["started_at"].as_str().unwrap_or_default().to_owned());
        let sql = "INSERT INTO calls SELECT $1, * FROM unnest($2::text[], $3::text[], $4::text[])";
        let bodies = each(Value::to_string);
        client.execute(sql, &[&id, &ids, &times, &bodies]).await.expect("added");
    }
}

/// Answers until the process is killed.
pub(super) async fn main(url: &str) -> Result<(), Box<dyn Error>> {
    let mut config: Config = url.parse()?;
    config.options("-c synchronous_commit=off");
    let recycle = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(config, NoTls, recycle);
    let pool = Pool::builder(manager).max_size(CONNECTIONS).build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{{\"api\":\"http://{}\"}}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let _ = stream.set_nodelay(true);
        let pool = pool.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let pool = pool.clone();
                async move { Ok::<_, Infallible>(answer(&pool, &request).await) }
            });
            http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
        });
    }
}

async fn answer(pool: &Pool, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    match respond(pool, request).await {
        Ok(response) => response,
        Err(error) => {
            eprintln!("{error}");
            with(500, json!({ "error": { "code": "internal_error" } }).to_string())
        }
    }
}

fn with(status: u16, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status.try_into().expect("a status");
    response.headers_mut().insert(CONTENT_TYPE, "application/json".parse().expect("a value"));
    response
}

async fn respond(
    pool: &Pool,
    request: &Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Box<dyn Error + Send + Sync>> {
    let key = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let key = key.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    let client = pool.get().await?;
    let found = client.prepare_cached(KEY).await?;
    let digest = Sha256::digest(key).to_vec();
    let Some(found) = client.query_opt(&found, &[&digest]).await? else {
        return Ok(with(401, json!({ "error": { "code": "unauthorized" } }).to_string()));
    };
    let (id, account_id): (&str, &str) = (found.get(0), found.get(1));
    let path = request.uri().path();
    let (quota, per_minute) = if path == "/v1/account" { ("account", 60) } else { ("reads", 600) };
    let admit = client.prepare_cached(ADMIT).await?;
    if client.query_opt(&admit, &[&id, &quota, &per_minute]).await?.is_none() {
        let mut response = with(429, json!({ "error": { "code": "rate_limited" } }).to_string());
        response.headers_mut().insert(RETRY_AFTER, 60.into());
        return Ok(response);
    }
    Ok(match path {
        "/v1/account" => with(200, found.get(3)),
        "/v1/calls" if found.get::<_, Vec<&str>>(2).contains(&"calls:read") => {
            with(200, page(&client, account_id, request.uri().query().unwrap_or_default()).await?)
        }
        "/v1/calls" => with(403, json!({ "error": { "code": "forbidden" } }).to_string()),
        _ => with(404, json!({ "error": { "code": "not_found" } }).to_string()),
    })
}

async fn page(
    client: &Object,
    account: &str,
    query: &str,
) -> Result<String, tokio_postgres::Error> {
    let parameter = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.clone().find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let limit = parameter("limit").and_then(|limit| limit.parse().ok()).unwrap_or(20_usize);
    let after = parameter("cursor").and_then(|cursor| cursor.split_once('~')).unwrap_or(("~", ""));
    let read = client.prepare_cached(PAGE).await?;
    let fetch = i64::try_from(limit).unwrap_or(100) + 1;
    let rows = client.query(&read, &[&account, &after.0, &after.1, &fetch]).await?;
    let mut body = String::from("{\"data\":[");
    for (nth, row) in rows.iter().take(limit).enumerate() {
        body.push_str(if nth == 0 { "" } else { "," });
        body.push_str(row.get(2));
    }
    let cursor = (rows.len() > limit).then(|| rows.get(limit - 1)).flatten();
    let cursor = cursor.map(|row| format!("{}~{}", row.get::<_, &str>(1), row.get::<_, &str>(0)));
    let _ = write!(body, "],\"has_more\":{},\"next_cursor\":{}}}", cursor.is_some(), json!(cursor));
    Ok(body)
}
