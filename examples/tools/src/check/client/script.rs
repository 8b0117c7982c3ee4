//! A service that answers by a script.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use ::http::HeaderMap;
use call_assistant::Timestamp;
use serde_json::{Value, json};
use testing::receiver::read_head;

/// How many calls are on a page, whatever the limit.
const PAGE: usize = 4;

/// One request as it came.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) at: Instant,
    pub(super) target: String,
    pub(super) headers: HeaderMap,
}

/// An answer that comes instead of a page.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// A status, a code, and further fields of the head.
    Refusal(u16, &'static str, String),
    /// A 503 whose `Retry-After` is a date, this far ahead of the answer.
    Until(Duration),
    /// A page that the script writes.
    Page(Value),
    /// The connection ends before the head does.
    Close,
    /// Half of the page.
    Half,
    /// The page, a little at a time.
    Slowly,
}

#[derive(Debug, Default)]
struct State {
    calls: Vec<Value>,
    /// The answers to requests by their number, from 0.
    replies: Vec<(usize, Reply)>,
    asked: Vec<Asked>,
}

/// A service that runs until the kit ends.
#[derive(Clone, Debug)]
pub(super) struct Script {
    address: String,
    state: Arc<Mutex<State>>,
}

impl Script {
    /// Starts one with so many calls, of which the newest was written ten minutes ago.
    pub(super) fn start(count: u64) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?.to_string();
        let script = Self { address, state: Arc::default() };
        (0..count).for_each(|number| script.add(&format!("call_{number:02}"), 600 + 60 * number));
        let served = script.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = served.clone();
                thread::spawn(move || served.answer(stream));
            }
        });
        Ok(script)
    }

    /// Adds a call that was written so many seconds ago.
    pub(super) fn add(&self, id: &str, seconds_ago: u64) {
        let at =
            Timestamp::from(SystemTime::now()).saturating_sub(Duration::from_secs(seconds_ago));
        let at = at.floor_to_micros();
        self.lock().calls.push(json!({
            "id": id, "caller": { "contact_id": null, "phone_number": null, "display_name": null },
            "started_at": at.saturating_sub(Duration::from_secs(90)), "answered_at": null, "ended_at": null,
            "duration_seconds": null, "summary": null, "appointment_ids": [], "created_at": at,
            "of_a_later_version": { "x": 1 },
        }));
        self.lock().calls.sort_by_key(|call| std::cmp::Reverse(call["started_at"].to_string()));
    }

    /// Answers the request with this number so.
    pub(super) fn reply(self, number: usize, reply: Reply) -> Self {
        self.lock().replies.push((number, reply));
        self
    }

    /// Forgets what was asked, and what is still to be answered.
    pub(super) fn clear(&self) {
        let mut state = self.lock();
        state.asked.clear();
        state.replies.clear();
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn ids(&self) -> Vec<String> {
        let state = self.lock();
        state.calls.iter().filter_map(|call| call["id"].as_str().map(str::to_owned)).collect()
    }

    pub(super) fn calls(&self) -> Vec<Value> {
        self.lock().calls.clone()
    }

    /// Returns the requests for the list of calls.
    pub(super) fn asked(&self) -> Vec<Asked> {
        let asked = self.lock().asked.clone();
        asked.into_iter().filter(|one| one.target.starts_with("/v1/calls")).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, mut stream: TcpStream) -> Option<()> {
        let (first, headers) = read_head(&mut stream)?;
        let target = first.split(' ').nth(1)?.to_owned();
        let is_list = target.starts_with("/v1/calls");
        let asked = Asked { at: Instant::now(), target, headers };
        let reply = {
            let mut state = self.lock();
            let number =
                state.asked.iter().filter(|one| one.target.starts_with("/v1/calls")).count();
            state.asked.push(asked.clone());
            let found = state.replies.iter().find(|(of, _)| *of == number && is_list);
            found.map(|(_, reply)| reply.clone())
        };
        let page = if is_list { self.page(&asked.target) } else { account() };
        let (status, fields, body) = match &reply {
            Some(Reply::Refusal(status, code, fields)) => (*status, fields.clone(), refusal(code)),
            Some(Reply::Until(ahead)) => {
                let date = http_date(SystemTime::now() + *ahead);
                (503, format!("Retry-After: {date}\r\n"), refusal("unavailable"))
            }
            Some(Reply::Page(page)) => (200, String::new(), page.clone()),
            Some(Reply::Close) => return None,
            Some(Reply::Half | Reply::Slowly) | None => (200, String::new(), page),
        };
        let body = body.to_string();
        let date = ::http::HeaderValue::from_str(&http_date(SystemTime::now())).ok()?;
        let head = format!(
            "HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nX-Request-Id: req_1\r\nConnection: close\r\n\
             Date: {}\r\n{fields}Content-Length: {}\r\n\r\n",
            date.to_str().ok()?,
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        match reply {
            Some(Reply::Half) => stream.write_all(body.as_bytes().get(..body.len() / 2)?).ok(),
            Some(Reply::Slowly) => body.as_bytes().chunks(body.len() / 8).try_for_each(|part| {
                thread::sleep(Duration::from_millis(150));
                stream.write_all(part).ok()
            }),
            _ => stream.write_all(body.as_bytes()).ok(),
        }
    }

    /// Returns the page of a request: the newest first, from the place on that the cursor names.
    fn page(&self, target: &str) -> Value {
        let query = target.split_once('?').map(|(_, query)| query).unwrap_or_default();
        let given = |name: &str| {
            let mut pairs = query.split('&').filter_map(|part| part.split_once('='));
            pairs.find(|(known, _)| *known == name).map(|(_, value)| decoded(value))
        };
        let cursor = given("cursor");
        // It is also read where a client has not escaped it, which is a rule of its own.
        let cursor = cursor.unwrap_or_default();
        let digits = cursor.split(|c: char| !c.is_ascii_digit()).next();
        let from = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let of_cursor = cursor.split_once('&').map(|(_, filter)| filter).unwrap_or_default();
        // A cursor has the filter of its first page.
        let after = given("created_after").unwrap_or_else(|| of_cursor.to_owned());
        let after = Timestamp::parse(&after).ok();
        let calls: Vec<Value> =
            self.calls().into_iter().filter(|call| written_at(call) >= after).collect();
        let data: Vec<&Value> = calls.iter().skip(from).take(PAGE).collect();
        let next = from + data.len();
        let cursor =
            format!("{next}+/=&{}", after.map(|after| after.to_string()).unwrap_or_default());
        let more = next < calls.len();
        json!({ "data": data, "has_more": more, "next_cursor": if more { cursor.into() } else { Value::Null } })
    }
}

fn written_at(call: &Value) -> Option<Timestamp> {
    Timestamp::parse(call["created_at"].as_str().unwrap_or_default()).ok()
}

fn account() -> Value {
    json!({ "id": "acct_1", "business_name": null, "timezone": "Etc/UTC", "livemode": true })
}

fn refusal(code: &str) -> Value {
    json!({ "error": { "type": "of_a_later_version", "code": code, "message": "refused", "request_id": "req_1" } })
}

/// Decodes a value of a query.
pub(super) fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).unwrap_or(("", part));
        bytes.extend(u8::from_str_radix(digits, 16));
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Writes an HTTP date.
fn http_date(at: SystemTime) -> String {
    let seconds = Timestamp::from(at).unix_seconds();
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let text = Timestamp::from_unix(seconds).map(|at| at.to_string()).unwrap_or_default();
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let name =
        |names: &str, at: usize| names.get(at * 3..at * 3 + 3).unwrap_or_default().to_owned();
    let weekday = usize::try_from((days + 4).rem_euclid(7)).unwrap_or_default();
    let month = part(5, 7).parse::<usize>().unwrap_or(1) - 1;
    let (weekday, month) = (
        name("SunMonTueWedThuFriSat", weekday),
        name("JanFebMarAprMayJunJulAugSepOctNovDec", month),
    );
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!(
        "{weekday}, {} {month} {} {hour:02}:{minute:02}:{second:02} GMT",
        part(8, 10),
        part(0, 4)
    )
}
