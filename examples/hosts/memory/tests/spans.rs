//! What a layer beside the log sees of requests and attempts. OpenTelemetry is such a layer.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Debug;
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
use serde_json::json;
use testing::receiver::{Receiver, Reply};
use testing::running::{eventually, request};
use tokio::net::TcpListener;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_sees_whose_each_request_and_attempt_is_and_endpoints_see_nothing_of_it() {
    let spans = Spans::default();
    let lines = log::lines(Format::Json).with_filter(LevelFilter::ERROR);
    tracing_subscriber::registry().with(lines).with(spans.clone()).init();

    let receiver = Receiver::start();
    let url = receiver.url("/", &[Reply::Status(204)]);
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
    let [api_at, dashboard_at] =
        [&public, &private].map(|listener| listener.local_addr().unwrap().to_string());
    let answer = move |request, peer| api.clone().answer(request, peer);
    tokio::spawn(serve(public, LIMITS, answer, stop.clone()));
    let answer = move |request, peer| dashboard.clone().answer(request, peer);
    tokio::spawn(serve(private, LIMITS, answer, stop));

    let traced = format!("Traceparent: {TRACE}\r\n");
    let headers = format!("{traced}Authorization: Bearer {key}\r\n");
    let answer = request(&api_at, "GET", "/v1/account", &headers, b"");
    let id = answer.header("x-request-id").unwrap();
    spans.has("api", &[("account", "acct_1"), ("request", id), ("traceparent", TRACE)]);

    let pinged = request(&dashboard_at, "POST", "/endpoints/whep_1/ping", &traced, b"{}").json();
    let (event, delivery) = (pinged["id"].as_str().unwrap(), pinged["deliveries"][0].as_str());
    spans.has("dashboard", &[("route", "/endpoints/{id}/ping"), ("traceparent", TRACE)]);

    let got = eventually("it is sent", || receiver.got("/").pop());
    assert_eq!(got.header("x-service-delivery"), event);
    let all = format!("{:?} {}", got.headers, String::from_utf8_lossy(&got.body));
    assert!(!all.to_ascii_lowercase().contains("trace"), "{all}");
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
