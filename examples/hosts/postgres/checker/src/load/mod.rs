//! What happens to the host under test: customers with endpoints, their events, and owners.
//!
//! [`Customers`] has events accepted in its own transactions and by API processes. [`Receiver`] is
//! their endpoints, good and bad.

mod customers;
mod erasures;
mod receiver;

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant_postgres::key_ring;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

pub use self::customers::{Customers, DoneForCustomers};
pub use self::receiver::Receiver;

/// The flags of senders: an hour in two seconds, ten seconds in half a second.
pub const SCALE: [&str; 4] = ["--time-scale", crate::record::TIME_SCALE, "--timeout-scale", "0.05"];

/// Prepares a process of a host. Its log is not kept.
pub fn process(program: &OsStr, role: &str, url: &str, ring: &str, is_logged: bool) -> Command {
    let mut command = Command::new(program);
    command
        .args([role, "--allow-loopback-endpoints", "--database", url])
        .env(key_ring::VARIABLE, ring)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if !is_logged {
        command.stderr(Stdio::null());
    }
    command
}

/// Where the dashboards of the API processes listen. `None` for one that is not ready.
#[derive(Clone, Debug)]
pub struct Addresses(Arc<Mutex<Vec<Option<SocketAddr>>>>);

impl Addresses {
    pub fn of(processes: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![None; processes])))
    }

    /// Starts an API process, as this one of them.
    pub fn start(&self, nth: usize, mut api: Command) -> Child {
        self.0.lock().unwrap()[nth] = None;
        api.args(["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"]);
        let mut api = api.stdout(Stdio::piped()).spawn().unwrap();
        self.hear(nth, api.stdout.take().unwrap());
        api
    }

    /// Waits, on a thread of its own, for the line that a process says when it is ready.
    fn hear(&self, nth: usize, out: ChildStdout) {
        let addresses = self.clone();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(out).read_line(&mut line);
            let said: Value = serde_json::from_str(&line).unwrap_or_default();
            let url = said["dashboard"].as_str().unwrap_or_default();
            addresses.0.lock().unwrap()[nth] = url.trim_start_matches("http://").parse().ok();
        });
    }

    pub fn nth(&self, nth: u64) -> Option<SocketAddr> {
        let addresses = self.0.lock().unwrap();
        addresses[usize::try_from(nth).unwrap() % addresses.len()]
    }
}

/// Has a call recorded. Returns whether it is stored; `None` if nobody says.
async fn record(address: SocketAddr, account: &str, call: &Value) -> Option<bool> {
    let path = format!("/accounts/{account}/calls");
    match ask(address, Method::POST, &path, call).await? {
        // The second answer to a request that was repeated.
        StatusCode::CREATED | StatusCode::CONFLICT => Some(true),
        _ => Some(false),
    }
}

/// Asks a dashboard. `None` if nobody answers.
async fn ask(address: SocketAddr, method: Method, path: &str, body: &Value) -> Option<StatusCode> {
    let asked = tokio::time::timeout(Duration::from_secs(5), async {
        let stream = TcpStream::connect(address).await.ok()?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
        let driver = tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", address.to_string())
            .header("content-type", "application/json")
            .body(Full::<Bytes>::from(body.to_string()))
            .unwrap();
        let status = sender.send_request(request).await.ok().map(|response| response.status());
        driver.abort();
        status
    });
    asked.await.ok()?
}
