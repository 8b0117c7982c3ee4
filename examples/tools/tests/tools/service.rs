//! A service to sync from: the library's own words on a socket, with faults as the test says.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId, RequestId};
use call_assistant::model::{Account, Call, CallList};
use call_assistant::rest::ErrorCode;
use call_assistant::rest::{ApiError, ApiResponse, ListCalls, Operation};
use http::Response;

/// What goes wrong with a request, by its number from 1.
pub(crate) type Faults = fn(u64) -> Option<Fault>;

#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// An error in the envelope.
    Error(ErrorCode),
    /// 429 with `Retry-After` of a second.
    Limited,
    /// A proxy's page.
    Html,
    /// The connection is closed without an answer.
    Dropped,
    /// The answer breaks off half-way.
    BrokenOff,
}

/// Calls that can be listed, as long as this lives.
#[derive(Clone)]
pub(crate) struct Service(Arc<Shared>);

struct Shared {
    address: SocketAddr,
    /// In the order of the list, reversed.
    calls: Mutex<BTreeMap<(Timestamp, CallId), Call>>,
    page: usize,
    requests: AtomicU64,
    faults: Faults,
    account: &'static str,
}

impl Service {
    /// With pages of so many calls, however many are asked for.
    pub(crate) fn start(page: usize, faults: Faults, account: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let shared = Arc::new(Shared {
            address: listener.local_addr().unwrap(),
            calls: Mutex::default(),
            page,
            requests: AtomicU64::new(0),
            faults,
            account,
        });
        let service = Self(shared);
        let weak = Arc::downgrade(&service.0);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Some(shared) = weak.upgrade() else { break };
                std::thread::spawn(move || Self(shared).converse(stream.unwrap()));
            }
        });
        service
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.0.address)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, id: &str, started_at: Timestamp, created_at: Timestamp) {
        let id = CallId::parse(id).unwrap();
        let mut call = Call::new(id.clone(), started_at, created_at);
        call.summary = Some("Blåbærsyltetøy, and a line\nend".to_owned());
        self.0.calls.lock().unwrap().insert((started_at, id), call);
    }

    /// All calls, as their lines in a file have to be, in order of their ids.
    pub(crate) fn lines(&self) -> BTreeMap<String, String> {
        let calls = self.0.calls.lock().unwrap();
        let line = |call: &Call| String::from_utf8(call.to_json()).unwrap();
        calls.values().map(|call| (call.id.to_string(), line(call))).collect()
    }

    fn converse(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        loop {
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).ok()? == 0 {
                    return None;
                }
                if line == "\r\n" {
                    break;
                }
                lines.push(line);
            }
            let number = self.0.requests.fetch_add(1, Ordering::Relaxed) + 1;
            let authorized = lines
                .iter()
                .any(|line| line.to_lowercase().starts_with("authorization: bearer service_live_"));
            let id = RequestId::parse(&format!("req_{number}")).unwrap();
            let fault = (self.0.faults)(number);
            let broken_off = matches!(fault, Some(Fault::BrokenOff));
            let response = match fault {
                Some(Fault::Dropped) => return None,
                Some(Fault::Error(code)) => error(code, &id),
                Some(Fault::Limited) => {
                    let mut limited = error(ErrorCode::RateLimitExceeded, &id);
                    limited.headers_mut().insert("retry-after", 1.into());
                    limited
                }
                Some(Fault::Html) => {
                    let page = b"<h1>Bad gateway</h1>".to_vec();
                    Response::builder().status(502).body(page).unwrap()
                }
                _ if !authorized => error(ErrorCode::InvalidCredentials, &id),
                _ => self.answer(&lines[0], &id),
            };
            let (head, body) = response.into_parts();
            let mut text = format!("HTTP/1.1 {}\r\n", head.status);
            for (name, value) in &head.headers {
                text += &format!("{name}: {}\r\n", value.to_str().unwrap());
            }
            text += &format!("content-length: {}\r\n\r\n", body.len());
            stream.write_all(text.as_bytes()).ok()?;
            if broken_off {
                stream.write_all(&body[..body.len() / 2]).ok()?;
                return None;
            }
            stream.write_all(&body).ok()?;
        }
    }

    fn answer(&self, line: &str, id: &RequestId) -> Response<Vec<u8>> {
        let target = line.split(' ').nth(1).unwrap();
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        match Operation::of_path(path) {
            Some(Operation::GetAccount) => {
                let account = AccountId::parse(self.0.account).unwrap();
                Account::new(account, "Europe/Oslo").to_response(id)
            }
            Some(Operation::ListCalls) => {
                let list = ListCalls::from_query(query.unwrap_or_default()).unwrap();
                self.page(&list).to_response(id)
            }
            other => panic!("a sync asks for no {other:?}"),
        }
    }

    fn page(&self, query: &ListCalls) -> CallList {
        let calls = self.0.calls.lock().unwrap();
        let last = query.cursor.as_ref().map(|cursor| {
            let (started_at, id) = cursor.split_once('_').unwrap();
            (started_at.parse::<Timestamp>().unwrap(), CallId::parse(id).unwrap())
        });
        let mut rows = calls.iter().rev().filter(|(place, call)| {
            last.as_ref().is_none_or(|last| *place < last)
                && query.created().unwrap().contains(call.created_at)
        });
        let data: Vec<Call> =
            rows.by_ref().take(self.0.page).map(|(_, call)| call.clone()).collect();
        let cursor = rows.next().and_then(|_| data.last());
        let cursor = cursor.map(|call| format!("{}_{}", call.started_at, call.id));
        CallList::new(data, cursor)
    }
}

fn error(code: ErrorCode, id: &RequestId) -> Response<Vec<u8>> {
    let body = ApiError::new(code.clone(), id.clone()).to_json();
    let response = Response::builder().status(code.status().unwrap());
    response.header("x-request-id", id.as_str()).body(body).unwrap()
}
