//! A service to sync from: the library's own on a socket, with faults as the test says.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::testing::receiver::read_head;
use ::testing::running::lines;
use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId};
use call_assistant::model::Call;
use call_assistant::rest::client::testing::error;
use call_assistant::rest::{ApiKey, ErrorCode, testing};
use http::Request;

use crate::killing::KEY;
use crate::now;

/// What goes wrong with a request, by its number from 1.
pub(crate) type Faults = fn(u64) -> Option<Fault>;

#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// An error in the envelope.
    Error(ErrorCode),
    /// The answer breaks off half-way.
    BrokenOff,
}

/// Calls that can be listed, as long as this lives.
#[derive(Clone)]
pub(crate) struct Service(Arc<Shared>);

struct Shared {
    address: SocketAddr,
    service: Mutex<testing::Service>,
    lines: Mutex<BTreeMap<String, String>>,
    page: usize,
    requests: AtomicU64,
    faults: Faults,
}

impl Service {
    /// Starts it with pages of so many calls, however many are asked for.
    pub(crate) fn start(page: usize, faults: Faults, account: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut service = testing::Service::new(&ApiKey::parse(KEY).unwrap(), now());
        let id = AccountId::parse(account).unwrap();
        (service.status.account_id, service.keys[0].account_id) = (id.clone(), id.clone());
        service.account.id = id;
        let service = Self(Arc::new(Shared {
            address: listener.local_addr().unwrap(),
            service: Mutex::new(service),
            lines: Mutex::default(),
            page,
            requests: AtomicU64::new(0),
            faults,
        }));
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
        let mut call = Call::new(CallId::parse(id).unwrap(), started_at, created_at);
        call.summary = Some("Blåbærsyltetøy, and a line\nend".to_owned());
        let line = String::from_utf8(call.to_json()).unwrap();
        self.0.lines.lock().unwrap().insert(id.to_owned(), line);
        self.0.service.lock().unwrap().add(call);
    }

    /// Returns all calls, as their lines in a file have to be, in order of their ids.
    pub(crate) fn lines(&self) -> BTreeMap<String, String> {
        self.0.lines.lock().unwrap().clone()
    }

    fn converse(&self, mut stream: TcpStream) -> Option<()> {
        loop {
            let (line, headers) = read_head(&mut stream)?;
            let fault = (self.0.faults)(self.0.requests.fetch_add(1, Ordering::Relaxed) + 1);
            // A cursor is refused only where there is one.
            let is_refused = matches!(fault, Some(Fault::Error(ErrorCode::InvalidCursor)));
            let fault = fault.filter(|_| !is_refused || line.contains("cursor="));
            let broken_off = matches!(fault, Some(Fault::BrokenOff));
            let response = match fault {
                Some(Fault::Error(code)) => error(code),
                Some(Fault::BrokenOff) | None => {
                    let target = line.split(' ').nth(1)?;
                    let page = format!("limit={}", self.0.page);
                    let mut request =
                        Request::get(target.replace("limit=100", &page)).body(()).unwrap();
                    *request.headers_mut() = headers;
                    let mut service = self.0.service.lock().unwrap();
                    // Slow enough for every quota.
                    service.now = service.now.saturating_add(Duration::from_secs(2));
                    service.respond(&request)
                }
            };
            let (mut head, body) = response.into_parts();
            head.headers.insert("content-length", body.len().into());
            let text = format!("HTTP/1.1 {}\r\n{}\r\n", head.status, lines(&head.headers));
            stream.write_all(text.as_bytes()).ok()?;
            if broken_off {
                stream.write_all(&body[..body.len() / 2]).ok()?;
                return None;
            }
            stream.write_all(&body).ok()?;
        }
    }
}
