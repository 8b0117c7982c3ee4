//! The dashboard: what the specification leaves to the service's dashboard, and to the assistant
//! itself, as JSON on an address of its own, and a page for people.
//!
//! It has no login, for it is for one machine: it listens on loopback only, and answers neither
//! another site's page nor a name that somebody has pointed at this address.

mod answer;
mod calls;
mod show;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use call_assistant::Product;
use call_assistant::Timestamp;
use call_assistant::id::{CredentialId, EndpointId};
use call_assistant::model::Call;
use call_assistant::rest::server::StoredKey;
use call_assistant::rest::{ApiKey, Mode};
use call_assistant::webhook::sender::{MissedDeliveries, Status};
use http::header::{HOST, IF_NONE_MATCH, ORIGIN};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use self::answer::{Answer, Error};
use self::show::{Delivery, Taken};
use crate::data;
use crate::input::{Bad, Fields};
use crate::sender::Outbox;
use crate::store::{DeliveryRow, Store};
use crate::support::serve::{self, read_body};
use crate::support::{clock, log, random};

const PAGE: &str = include_str!("page.html");

/// The longest body, in bytes.
const MAX_BODY: usize = 1024 * 1024;

/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most deliveries in one answer.
const MAX_LIST: usize = 1000;

/// The dashboard's server. Clone it freely.
#[derive(Clone, Debug)]
pub(crate) struct Dashboard {
    store: Arc<Store>,
    outbox: Outbox,
    allow_loopback: bool,
    policy: HeaderValue,
}

/// A request, taken apart.
struct Asked<'a> {
    method: &'a Method,
    path: Vec<&'a str>,
    query: Vec<(String, String)>,
    headers: &'a HeaderMap,
    body: Value,
    now: Timestamp,
}

impl Dashboard {
    /// A dashboard over a store.
    pub(crate) fn new(store: Arc<Store>, outbox: Outbox, allow_loopback: bool) -> Self {
        Self { store, outbox, allow_loopback, policy: policy(PAGE) }
    }

    /// Answers a request.
    pub(crate) async fn answer(self, request: Request<Incoming>, _peer: SocketAddr) -> Answer {
        let began = clock::now();
        let (head, body) = request.into_parts();
        let mut route = String::from("(unknown path)");
        let answered = async {
            from_here(&head.headers)?;
            let decoded: Vec<String> =
                head.uri.path().trim_start_matches('/').split('/').map(decode).collect();
            let path: Vec<&str> = decoded.iter().map(String::as_str).collect();
            route = template(&path);
            let body = match head.method {
                Method::POST | Method::PATCH => {
                    read_body(body, MAX_BODY, PATIENCE).await.map_err(Error::Body)?
                }
                _ => Default::default(),
            };
            let body = match body.is_empty() {
                true => json!({}),
                false => serde_json::from_slice(&body).map_err(|error| {
                    let at = format!("line {} column {}", error.line(), error.column());
                    Bad::new("", format!("the body is not JSON at {at}"))
                })?,
            };
            let query = head.uri.query().unwrap_or_default().as_bytes();
            let query = url::form_urlencoded::parse(query).into_owned().collect();
            let (method, headers) = (&head.method, &head.headers);
            self.route(&Asked { method, path, query, headers, body, now: clock::now() })
        };
        let answer = answered.await.unwrap_or_else(Error::answer);
        // The page asks every second; that nothing has changed is not worth a line.
        if answer.status() != StatusCode::NOT_MODIFIED {
            let took = clock::now().since(began).as_micros();
            let status = answer.status().as_u16();
            let method = serve::method(&head.method);
            log::line(&format!("dashboard {method} {route} {status} {took} us"));
        }
        answer
    }

    fn route(&self, asked: &Asked<'_>) -> Result<Answer, Error> {
        let Asked { method, path, .. } = asked;
        let get = *method == Method::GET || *method == Method::HEAD;
        let post = *method == Method::POST;
        match path.as_slice() {
            [""] if get => Ok(answer::page(PAGE, &self.policy)),
            ["accounts"] if get => Ok(ok(&self.accounts())),
            ["accounts", id] if get => Ok(ok(&show::account(self.store.lock().account(id)?))),
            ["accounts", id] if *method == Method::PATCH => self.change_account(id, asked),
            ["accounts", id, "overview"] if get => self.overview(id, asked),
            ["accounts", id, "keys"] if get => self.keys(id, asked),
            ["accounts", id, "keys"] if post => self.create_key(id, asked),
            ["accounts", id, "calls"] if get => self.calls(id),
            ["accounts", id, "calls"] if post => self.record_call(id, asked),
            ["accounts", id, "events"] if post => self.emit(id, asked),
            ["accounts", id, "endpoints"] if get => self.endpoints(id),
            ["accounts", id, "endpoints"] if post => self.create_endpoint(id, asked),
            ["accounts", id, "deliveries"] if get => self.deliveries(id, asked),
            ["keys", id, "revoke"] if post => self.revoke(id, asked),
            ["endpoints", id] if get => Ok(ok(&show::endpoint(self.store.lock().endpoint(id)?.1))),
            ["endpoints", id, "enable"] if post => self.enable(id, asked),
            ["endpoints", id, "ping"] if post => self.ping(id, asked),
            ["deliveries", id] if get => {
                let tables = self.store.lock();
                let taken = Taken::of(tables.delivery(id)?, &tables);
                drop(tables);
                Ok(ok(&taken.whole()))
            }
            ["deliveries", id, "redeliver"] if post => self.redeliver(id, asked),
            path => Err(methods(path).map_or(Error::NoSuchPath, Error::Method)),
        }
    }

    fn accounts(&self) -> Value {
        let tables = self.store.lock();
        show::list(tables.accounts().map(show::account).collect())
    }

    /// Everything that a page shows of an account. The tag tells whether it has changed.
    fn overview(&self, id: &str, asked: &Asked<'_>) -> Result<Answer, Error> {
        let tables = self.store.lock();
        let account = tables.account(id)?;
        // Keys expire by themselves, so the tag changes at least every ten seconds.
        let tag = format!("\"{}-{}\"", tables.version(), asked.now.unix_seconds() / 10);
        let tag = HeaderValue::try_from(tag).unwrap_or_else(|_| HeaderValue::from_static("\"\""));
        if asked.headers.get(IF_NONE_MATCH) == Some(&tag) {
            return Ok(answer::unchanged(tag));
        }
        let mut shown = json!({
            "account": show::account(account),
            "plans": crate::store::PLANS.map(|plan| plan.name),
            "keys": tables.keys(account).map(|key| show::key(key, asked.now)).collect::<Vec<_>>(),
            "endpoints": tables.endpoints(account).map(show::endpoint).collect::<Vec<_>>(),
            "now": asked.now,
        });
        let calls: Vec<Call> = account.calls(Mode::Live).newest(10).cloned().collect();
        let deliveries = tables.deliveries(account).take(50);
        let deliveries: Vec<Taken> = deliveries.map(|row| Taken::of(row, &tables)).collect();
        drop(tables);
        shown["calls"] = calls.iter().map(show::call).collect();
        let deliveries = deliveries.iter().map(Taken::listed).collect();
        Ok(answer::tagged(&Overview { rest: shown, deliveries }, tag))
    }

    fn change_account(&self, id: &str, asked: &Asked<'_>) -> Result<Answer, Error> {
        let known = ["plan", "subscription_active", "closing"];
        let fields = Fields::of("", &asked.body, &known)?;
        let plan = fields.has("plan").then(|| data::plan(&fields)).transpose()?;
        let subscription_active = fields.flag("subscription_active")?;
        let closing = fields.flag("closing")?;
        let mut tables = self.store.lock();
        let row = tables.account_mut(id)?;
        row.plan = plan.unwrap_or(row.plan);
        row.subscription_active = subscription_active.unwrap_or(row.subscription_active);
        row.closing = closing.unwrap_or(row.closing);
        Ok(ok(&show::account(row)))
    }

    fn keys(&self, id: &str, asked: &Asked<'_>) -> Result<Answer, Error> {
        let tables = self.store.lock();
        let account = tables.account(id)?;
        let keys = tables.keys(account).map(|key| show::key(key, asked.now));
        Ok(ok(&show::list(keys.collect())))
    }

    fn create_key(&self, id: &str, asked: &Asked<'_>) -> Result<Answer, Error> {
        let known = ["name", "mode", "scopes", "expires_at"];
        let fields = Fields::of("", &asked.body, &known)?;
        let name = fields.text("name")?;
        let name = fields.required("name", name)?;
        if name.is_empty() || name.len() > 100 || name.chars().any(char::is_control) {
            return Err(Bad::new("name", "expected 1 to 100 bytes of plain text").into());
        }
        let mode = data::mode(&fields)?;
        let mode = fields.required("mode", mode)?;
        fields.required("scopes", fields.value("scopes"))?;
        let scopes = data::scopes(&fields)?;
        let expires_at = fields.read("expires_at", Timestamp::parse)?;

        let secret = ApiKey::from_random(&Product::default(), mode, random::bytes());
        let mut tables = self.store.lock();
        let account = tables.account(id)?.id.clone();
        let key_id = CredentialId::from_random(random::bytes());
        let mut key =
            StoredKey::new(key_id, account, &secret, asked.now).named(name).with_scopes(scopes);
        key.expires_at = expires_at;
        tables.add_key(key.clone())?;
        drop(tables);
        let mut shown = show::key(&key, asked.now);
        shown["secret"] = secret.reveal().into();
        Ok(created(&shown))
    }

    fn revoke(&self, id: &str, asked: &Asked<'_>) -> Result<Answer, Error> {
        nothing_asked(asked)?;
        let (mut tables, now) = self.store.write();
        let key = tables.key_mut(id)?;
        key.revoke(now);
        Ok(ok(&show::key(key, now)))
    }

    fn endpoints(&self, id: &str) -> Result<Answer, Error> {
        let tables = self.store.lock();
        let account = tables.account(id)?;
        Ok(ok(&show::list(tables.endpoints(account).map(show::endpoint).collect())))
    }

    fn create_endpoint(&self, id: &str, asked: &Asked<'_>) -> Result<Answer, Error> {
        let fields = Fields::of("", &asked.body, &["url", "secret"])?;
        let (target, secret) = data::endpoint(&fields, self.allow_loopback)?;
        let (mut tables, now) = self.store.write();
        let account = tables.account(id)?.id.clone();
        let endpoint = EndpointId::from_random(random::bytes());
        let row = tables.add_endpoint(&account, endpoint, target, secret.clone(), now)?;
        let mut shown = show::endpoint(row);
        shown["secret"] = secret.reveal().into();
        Ok(created(&shown))
    }

    fn enable(&self, id: &str, asked: &Asked<'_>) -> Result<Answer, Error> {
        nothing_asked(asked)?;
        let (mut tables, now) = self.store.write();
        let missed = tables.enable(id, now)?;
        let (_, row) = tables.endpoint(id)?;
        let mut shown = show::endpoint(row);
        // What it missed is not sent by itself; its owner may redeliver each.
        let account = tables.account(row.account_id.as_str())?;
        let of_it = |delivery: &&DeliveryRow| {
            tables.endpoint_of(delivery.endpoint).is_some_and(|of| of.id == row.id)
                && missed.as_ref().is_some_and(|m: &MissedDeliveries| m.includes(&delivery.state))
        };
        let ids: Vec<_> = tables.deliveries(account).filter(of_it).map(|row| &row.id).collect();
        shown["missed_deliveries"] = json!(ids);
        Ok(ok(&shown))
    }

    fn deliveries(&self, id: &str, asked: &Asked<'_>) -> Result<Answer, Error> {
        let (mut status, mut endpoint, mut limit) = (None, None, MAX_LIST);
        for (name, value) in &asked.query {
            match name.as_str() {
                // An empty value filters nothing, as in a form that was left empty.
                "status" | "endpoint" if value.is_empty() => {}
                "status" => {
                    let read = serde_json::from_value::<Status>(json!(value));
                    let known = "waiting, sending, delivered, failed, gone, parked or skipped";
                    status = Some(read.map_err(|_| Bad::new("status", format!("not {known}")))?);
                }
                "endpoint" => endpoint = Some(value.as_str()),
                "limit" => {
                    let read = value.parse().ok().filter(|limit| (1..=MAX_LIST).contains(limit));
                    limit =
                        read.ok_or_else(|| Bad::new("limit", format!("not from 1 to {MAX_LIST}")))?;
                }
                _ => {
                    return Err(Bad::new("query", "there are status, endpoint and limit").into());
                }
            }
        }
        let tables = self.store.lock();
        let account = tables.account(id)?;
        if let Some(endpoint) = endpoint
            && tables.endpoint(endpoint)?.1.account_id != account.id
        {
            return Err(Error::Refused(crate::store::Refused::NotFound("endpoint")));
        }
        let fits = |row: &&DeliveryRow| {
            let of = tables.endpoint_of(row.endpoint).map(|endpoint| endpoint.id.as_str());
            status.is_none_or(|status| row.state.status() == status)
                && endpoint.is_none_or(|endpoint| of == Some(endpoint))
        };
        // One more tells whether there are more.
        let found = tables.deliveries(account).filter(fits).take(limit.saturating_add(1));
        let mut taken: Vec<Taken> = found.map(|row| Taken::of(row, &tables)).collect();
        drop(tables);
        let has_more = taken.len() > limit;
        taken.truncate(limit);
        Ok(ok(&Deliveries { data: taken.iter().map(Taken::listed).collect(), has_more }))
    }

    fn redeliver(&self, id: &str, asked: &Asked<'_>) -> Result<Answer, Error> {
        nothing_asked(asked)?;
        let (mut tables, now) = self.store.write();
        let again = tables.redeliver(id, now)?;
        let taken = Taken::of(tables.delivery(id)?, &tables);
        drop(tables);
        self.outbox.send(vec![again]);
        Ok(answer::json(StatusCode::ACCEPTED, &taken.whole()))
    }
}

/// Deliveries, newest first.
#[derive(Debug, Serialize)]
struct Deliveries<'a> {
    data: Vec<Delivery<'a>>,
    has_more: bool,
}

/// Everything that a page shows of an account.
#[derive(Debug, Serialize)]
struct Overview<'a> {
    #[serde(flatten)]
    rest: Value,
    deliveries: Vec<Delivery<'a>>,
}

fn ok(value: &impl Serialize) -> Answer {
    answer::json(StatusCode::OK, value)
}

fn created(value: &impl Serialize) -> Answer {
    answer::json(StatusCode::CREATED, value)
}

fn nothing_asked(asked: &Asked<'_>) -> Result<(), Error> {
    Fields::of("", &asked.body, &[]).map(drop).map_err(Error::Bad)
}

/// The methods of a path, if there is such a path.
fn methods(path: &[&str]) -> Option<&'static str> {
    match path {
        [""] | ["accounts"] | ["endpoints" | "deliveries", _] => Some("GET, HEAD"),
        ["accounts", _] => Some("GET, HEAD, PATCH"),
        ["accounts", _, "overview" | "deliveries"] => Some("GET, HEAD"),
        ["accounts", _, "keys" | "calls" | "endpoints"] => Some("GET, HEAD, POST"),
        ["accounts", _, "events"]
        | ["keys", _, "revoke"]
        | ["endpoints", _, "enable" | "ping"]
        | ["deliveries", _, "redeliver"] => Some("POST"),
        _ => None,
    }
}

/// A path for the log: what stands where an id belongs may be anything, a secret included.
fn template(path: &[&str]) -> String {
    if methods(path).is_none() {
        return "(unknown path)".to_owned();
    }
    let shown = path.iter().enumerate().map(|(at, part)| if at == 1 { "{id}" } else { part });
    shown.fold(String::new(), |path, part| path + "/" + part)
}

/// A site that a person visits can make their browser send requests here, or have its own name
/// resolve to this address. The first says where it comes from, the second asks for another host.
fn from_here(headers: &HeaderMap) -> Result<(), Error> {
    let local = |authority: &str| {
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            _ => authority,
        };
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let origin = headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
    let own = origin.is_none_or(|origin| origin.strip_prefix("http://") == Some(host));
    if local(host) && own { Ok(()) } else { Err(Error::Foreign) }
}

/// The script and the style that the page has, by their digests, and nothing else.
fn policy(page: &str) -> HeaderValue {
    let digest = |open: &str, close: &str| {
        let inside = page.split_once(open).and_then(|(_, rest)| rest.split_once(close));
        let digest = Sha256::digest(inside.unwrap_or_default().0.as_bytes());
        format!("'sha256-{}'", STANDARD.encode(digest))
    };
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        digest("<script>", "</script>"),
        digest("<style>", "</style>"),
    );
    HeaderValue::try_from(policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
}

/// Percent-decodes a segment of a path. What is broken stays as it is: no id is like that.
fn decode(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let decoded = after.get(..2).filter(|_| first == b'%').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        bytes.push(decoded.unwrap_or(first));
        rest = if decoded.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| segment.to_owned())
}
