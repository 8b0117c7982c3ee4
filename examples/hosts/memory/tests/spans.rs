//! What a layer beside the log sees of requests and attempts. OpenTelemetry is such a layer.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant::rest::server::CursorKeys;
use call_assistant_service::faults::Faults;
use call_assistant_service::local::Local;
use call_assistant_service::sender::{Pace, Sender};
use call_assistant_service::store::Store;
use host::auth::access::Access;
use host::dashboard::Dashboard;
use host::http::api::Api;
use host::http::serve::{Limits, serve};
use host::log::{self, Format};
use host::program::shutdown;
use host::program::watch::Watch;
use host::store::{EndpointLimit, Store as _};
use host::{clock, data, post};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::prelude::*;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const LIMITS: Limits = Limits { connections: 8, patience: Duration::from_secs(10) };

/// The name and the fields of each span.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<BTreeMap<u64, Span>>>);

#[derive(Clone, Debug, Default)]
struct Span(&'static str, BTreeMap<&'static str, String>);

impl Visit for Span {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.1.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

impl<S: Subscriber> tracing_subscriber::Layer<S> for Spans {
    fn on_new_span(&self, new: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        let mut span = Span(new.metadata().name(), BTreeMap::new());
        new.record(&mut span);
        self.0.lock().unwrap().insert(id.into_u64(), span);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        values.record(self.0.lock().unwrap().get_mut(&id.into_u64()).unwrap());
    }
}

impl Spans {
    /// Checks that the one span with this name has these fields and no others.
    #[track_caller]
    fn has(&self, name: &str, expected: &[(&str, &str)]) {
        let spans = self.0.lock().unwrap();
        let found: Vec<&Span> = spans.values().filter(|span| span.0 == name).collect();
        let [Span(_, fields)] = found.as_slice() else { panic!("{name}: {found:?}") };
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, it)| (*name, &**it)).collect();
        assert_eq!(fields, expected, "{name}");
    }
}

/// Sends a request, and returns the answer.
async fn ask(address: SocketAddr, start: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let len = body.len();
    let head =
        format!("{start}\r\nhost: {address}\r\ntraceparent: {TRACE}\r\ncontent-length: {len}");
    stream
        .write_all(format!("{head}\r\nconnection: close\r\n\r\n{body}").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_sees_whose_each_request_and_attempt_is_and_endpoints_see_nothing_of_it() {
    let spans = Spans::default();
    let lines = log::lines(Format::Json).with_filter(LevelFilter::ERROR);
    tracing_subscriber::registry().with(lines).with(spans.clone()).init();

    let receiver = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", receiver.local_addr().unwrap());
    let key = format!("service_live_{}", "5".repeat(64));
    let data = json!({ "accounts": [{
        "id": "acct_1",
        "timezone": "Etc/UTC",
        "keys": [{ "secret": key }],
        "endpoints": [{ "id": "whep_1", "url": url }],
    }] });
    let tables = Arc::new(Store::new(EndpointLimit::default()));
    let client = post::Client::new(None).unwrap();
    let sender = Sender::new(Arc::clone(&tables), client, Pace::default(), Faults::default());
    let store = Local::new(tables, sender.load());
    store.load(data::read(&data, true, clock::now()).unwrap()).await.unwrap();
    let (trigger, stop) = shutdown::manual();
    tokio::spawn(sender.run(Watch::new(trigger.clone(), stop.clone())));
    let api = Api::new(store.clone(), CursorKeys::new(1, [7; 32]));
    let dashboard = Dashboard::new(store, Access::ThisMachine, true);
    let [public, private] = [TcpListener::bind("127.0.0.1:0"), TcpListener::bind("127.0.0.1:0")];
    let (public, private) = (public.await.unwrap(), private.await.unwrap());
    let addresses = [&public, &private].map(|listener| listener.local_addr().unwrap());
    let answer = move |request, peer| api.clone().answer(request, peer);
    tokio::spawn(serve(public, LIMITS, answer, stop.clone()));
    let answer = move |request, peer| dashboard.clone().answer(request, peer);
    tokio::spawn(serve(private, LIMITS, answer, stop));

    let start = format!("GET /v1/account HTTP/1.1\r\nauthorization: Bearer {key}");
    let answer = ask(addresses[0], &start, "").await;
    let (_, request) = answer.split_once("x-request-id: ").unwrap();
    let request = request.lines().next().unwrap();
    spans.has("api", &[("account", "acct_1"), ("request", request), ("traceparent", TRACE)]);

    let answer = ask(addresses[1], "POST /endpoints/whep_1/ping HTTP/1.1", "{}").await;
    let (_, pinged) = answer.split_once("\r\n\r\n").unwrap();
    let pinged: Value = serde_json::from_str(pinged).unwrap();
    let (event, delivery) = (pinged["id"].as_str().unwrap(), pinged["deliveries"][0].as_str());
    spans.has("dashboard", &[("route", "/endpoints/{id}/ping"), ("traceparent", TRACE)]);

    let (mut stream, _) = receiver.accept().await.unwrap();
    let mut got = vec![0; 64 * 1024];
    let len = stream.read(&mut got).await.unwrap();
    let got = String::from_utf8(got[..len].to_vec()).unwrap().to_ascii_lowercase();
    assert!(got.contains(event) && !got.contains("trace"), "{got}");
    let expected = [
        ("account", "acct_1"),
        ("attempt", "1"),
        ("delivery", delivery.unwrap()),
        ("endpoint", "whep_1"),
        ("event", event),
    ];
    spans.has("attempt", &expected);
    trigger.pull();
}
