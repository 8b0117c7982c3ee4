//! The side that sends webhooks. It is driven by a control plane of eight verbs, which the page of the kit defines.

mod answers;
mod endpoints;
mod requests;
mod schedule;

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testing::receiver::{Got, Receiver, Reply};

use super::case::{Case, Not, Seen, ensure};
use super::http::{Answer, Place, escaped};

/// All cases of a sender. The last ones change the scale of its time, or stop it.
pub const CASES: &[&[Case<Sender>]] =
    &[requests::CASES, answers::CASES, endpoints::CASES, schedule::CASES];

/// All waits together, 25,870 seconds, in half a second.
const FAST: f64 = 0.000_02;

/// How long a request, or the end of a delivery, is waited for.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long nothing is taken for nothing: longer than all waits together.
const SETTLES: Duration = Duration::from_millis(900);

/// A sender, and the endpoints that it sends to.
#[derive(Debug)]
pub struct Sender {
    control: Place,
    receiver: Receiver,
    /// The scale of the sender's time, and the endpoints that it has since it was set.
    state: Mutex<(f64, Vec<String>)>,
    next: AtomicU32,
}

/// An endpoint of the kit's.
#[derive(Clone, Debug)]
struct Hook {
    id: String,
    secret: String,
    path: String,
}

impl Sender {
    /// Creates one with the address of a control plane.
    ///
    /// # Errors
    /// The address cannot be read, or nothing listens there.
    pub fn new(control: &str) -> Result<Self, String> {
        let (control, receiver) = (Place::new(control, None)?, Receiver::start());
        control.connect()?;
        Ok(Self { control, receiver, state: Mutex::new((0.0, vec![])), next: AtomicU32::new(0) })
    }

    fn ask(&self, method: &str, target: &str, body: &Value) -> Seen<Answer> {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let fields = "Content-Type: application/json\r\n";
        let request = self.control.request(method, target, fields, body.as_bytes());
        Ok(self
            .control
            .exchange(&request)
            .map_err(|error| format!("{method} {target}: {error}"))?)
    }

    /// Uses a verb, which has to succeed. Where the control plane does not have it, nothing is seen.
    fn verb(&self, method: &str, target: &str, body: &Value) -> Seen<Value> {
        let answer = self.ask(method, target, body)?;
        let why = || format!("{method} {target}: {} {}", answer.status, answer.text());
        match answer.status {
            200..300 => Ok(answer.json()),
            404 | 405 | 501 => Err(Not::Unseen(why())),
            _ => Err(Not::Broken(why())),
        }
    }

    /// Sets the scale of the sender's time. Endpoints of before are paused, so that they get nothing more.
    fn begin(&self, scale: f64) -> Seen {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, before) = &mut *state;
        if now.to_bits() != scale.to_bits() {
            self.verb("POST", "/clock", &json!({ "scale": scale }))?;
            before.clear();
            *now = scale;
        }
        for id in before.drain(..) {
            self.ask("POST", &format!("/endpoints/{}/pause", escaped(&id)), &json!({}))?;
        }
        Ok(())
    }

    /// Adds an endpoint that answers with these in turn, and then with the last.
    fn hook(&self, replies: &[Reply]) -> Seen<Hook> {
        let path = format!("/hook/{}", self.next.fetch_add(1, Ordering::Relaxed));
        let url = self.receiver.url(&path, replies);
        let added = self.verb("POST", "/endpoints", &json!({ "url": url }))?;
        let text = |field: &str| {
            let lacks = || Not::Broken(format!("POST /endpoints: no {field}"));
            added[field].as_str().map(str::to_owned).ok_or_else(lacks)
        };
        let hook = Hook { id: text("id")?, secret: text("secret")?, path };
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1.push(hook.id.clone());
        Ok(hook)
    }

    /// Begins, with one endpoint.
    fn with_hook(&self, replies: &[Reply]) -> Seen<Hook> {
        self.begin(FAST)?;
        self.hook(replies)
    }

    /// Emits an event, and returns its id.
    fn emit(&self) -> Seen<String> {
        let data = json!({ "object": { "id": "cont_1", "note": "S\u{f8}n \u{4e88}\u{7d04} <b>&\u{1f9b7}" } });
        let event = json!({ "type": "contact.updated", "data": data });
        let emitted = self.verb("POST", "/events", &event)?;
        let lacks = || Not::Broken("POST /events: no id".to_owned());
        emitted["id"].as_str().map(str::to_owned).ok_or_else(lacks)
    }

    fn enable(&self, hook: &Hook) -> Seen {
        self.verb("POST", &format!("/endpoints/{}/enable", escaped(&hook.id)), &json!({})).map(drop)
    }

    fn pause(&self, hook: &Hook) -> Seen {
        self.verb("POST", &format!("/endpoints/{}/pause", escaped(&hook.id)), &json!({})).map(drop)
    }

    /// Returns the delivery of an event to an endpoint.
    fn delivery(&self, hook: &Hook, event: &str) -> Seen<Value> {
        let listed =
            self.verb("GET", &format!("/deliveries?endpoint={}", escaped(&hook.id)), &json!({}))?;
        let found =
            listed["data"].as_array().into_iter().flatten().find(|one| one["event_id"] == event);
        found.cloned().ok_or_else(|| Not::Broken(format!("GET /deliveries: nothing of {event}")))
    }

    /// Redelivers an event.
    fn redeliver(&self, hook: &Hook, event: &str) -> Seen {
        let delivery = self.delivery(hook, event)?;
        let id = escaped(delivery["id"].as_str().unwrap_or_default());
        self.verb("POST", &format!("/deliveries/{id}/redeliver"), &json!({})).map(drop)
    }

    /// Waits until the delivery of an event has ended, and returns its status.
    fn ended(&self, hook: &Hook, event: &str) -> Seen<String> {
        let found = self.until(|| {
            let delivery = self.delivery(hook, event)?;
            let status = delivery["status"].as_str().unwrap_or_default();
            Ok((status != "pending").then(|| status.to_owned()))
        })?;
        found.ok_or_else(|| Not::Broken(format!("{event} is still pending after {PATIENCE:?}")))
    }

    /// Emits so many events that all fail, and waits for their ends.
    fn fail(&self, hook: &Hook, times: u8) -> Seen<String> {
        let events: Vec<String> = (0..times).map(|_| self.emit()).collect::<Seen<_>>()?;
        for event in &events {
            self.ended(hook, event)?;
        }
        Ok(events.into_iter().next_back().unwrap_or_default())
    }

    /// Waits for so many requests, and returns them.
    fn came(&self, hook: &Hook, count: usize) -> Seen<Vec<Got>> {
        self.until(|| Ok((self.got(hook).len() >= count).then_some(())))?;
        let got = self.got(hook);
        ensure(got.len() >= count, || format!("{} requests came, not {count}", got.len()))?;
        Ok(got)
    }

    fn got(&self, hook: &Hook) -> Vec<Got> {
        self.receiver.got(&hook.path)
    }

    /// Emits an event that the endpoint has to get, or that it must not.
    fn is_active(&self, hook: &Hook, expected: bool) -> Seen {
        let event = self.emit()?;
        if !expected {
            thread::sleep(SETTLES);
        }
        let came = self.until(|| {
            let of_event =
                self.got(hook).iter().any(|got| got.header("x-service-delivery") == event);
            Ok((of_event || !expected).then_some(of_event))
        })?;
        let came = came.unwrap_or_default();
        ensure(came == expected, || {
            let is = if came { "still sent to" } else { "sent to no more" };
            format!("the endpoint is {is}")
        })
    }

    fn until<T>(&self, mut found: impl FnMut() -> Seen<Option<T>>) -> Seen<Option<T>> {
        let began = Instant::now();
        loop {
            let found = found()?;
            if found.is_some() || began.elapsed() >= PATIENCE {
                return Ok(found);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
