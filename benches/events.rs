//! Reading an event and writing one, beside `serde_json` with one known type and the same structs.
//!
//! The bodies hold a call; as the service writes them they are 843 bytes long.

#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::model::Call;
use call_assistant::webhook::event::{ApiVersion, Event, EventData, EventType, NewEvent, Origin};
use divan::{AllocProfiler, Bencher, black_box};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const LEN: usize = 843;

fn main() {
    divan::main();
}

#[divan::bench]
fn read(bencher: Bencher<'_, '_>) {
    let body = body();
    bencher.bench(|| Event::from_bytes_verified_earlier(black_box(&body)).unwrap());
}

#[divan::bench]
fn read_by_serde_json(bencher: Bencher<'_, '_>) {
    let body = body();
    bencher.bench(|| {
        let text = core::str::from_utf8(black_box(&body)).unwrap();
        serde_json::from_str::<Envelope<Data>>(text).unwrap()
    });
}

#[divan::bench]
fn read_by_serde_json_from_slice(bencher: Bencher<'_, '_>) {
    let body = body();
    bencher.bench(|| serde_json::from_slice::<Envelope<Data>>(black_box(&body)).unwrap());
}

/// Read twice: the data cannot be read before the type is known.
#[divan::bench]
fn read_data_first(bencher: Bencher<'_, '_>) {
    let body = String::from_utf8(body()).unwrap();
    let (envelope, data) = body.split_once(r#","data":"#).unwrap();
    let data = data.strip_suffix('}').unwrap();
    let envelope = envelope.strip_prefix('{').unwrap();
    let body = format!(r#"{{"data":{data},{envelope}}}"#).into_bytes();
    bencher.bench(|| Event::from_bytes_verified_earlier(black_box(&body)).unwrap());
}

/// The envelope alone: the data of an unknown type is kept as it is.
#[divan::bench]
fn read_unknown(bencher: Bencher<'_, '_>) {
    let body = String::from_utf8(body()).unwrap().replace("call.ended", "call.ender");
    bencher.bench(|| Event::from_bytes_verified_earlier(black_box(body.as_bytes())).unwrap());
}

#[divan::bench]
fn read_unknown_by_serde_json(bencher: Bencher<'_, '_>) {
    let body = body();
    bencher.bench(|| {
        let text = core::str::from_utf8(black_box(&body)).unwrap();
        serde_json::from_str::<Envelope<Box<RawValue>>>(text).unwrap()
    });
}

/// Read four times: on the way, its required fields, for the place of the fault, and whole.
#[divan::bench]
fn read_drifted(bencher: Bencher<'_, '_>) {
    let body = String::from_utf8(body()).unwrap().replace(r#""duration_seconds":"#, r#""was":"#);
    let body = body.replace(r#""started_at":""#, r#""started_at":"at "#);
    bencher.bench(|| Event::from_bytes_verified_earlier(black_box(body.as_bytes())).unwrap());
}

#[divan::bench]
fn compose(bencher: Bencher<'_, '_>) {
    let call = call();
    bencher.bench(|| new_event().call_ended(black_box(&call)).unwrap());
}

#[divan::bench]
fn write(bencher: Bencher<'_, '_>) {
    let event = Event::from_bytes_verified_earlier(&body()).unwrap();
    bencher.bench(|| black_box(&event).to_json());
}

#[divan::bench]
fn write_by_serde_json(bencher: Bencher<'_, '_>) {
    let body = body();
    let event: Envelope<Data> = serde_json::from_slice(&body).unwrap();
    assert_eq!(serde_json::to_vec(&event).unwrap(), body);
    bencher.bench(|| serde_json::to_vec(black_box(&event)).unwrap());
}

/// The same structs, for somebody who knows beforehand what comes.
#[derive(Deserialize, Serialize)]
struct Envelope<D> {
    id: EventId,
    r#type: EventType,
    #[serde(serialize_with = "with_offset")]
    created_at: Timestamp,
    api_version: ApiVersion,
    account_id: AccountId,
    origin: Option<Origin>,
    data: D,
}

/// With `+00:00` instead of `Z`, as events have it.
fn with_offset<S: Serializer>(instant: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    let text = instant.to_string();
    serializer.collect_str(&format_args!("{}+00:00", text.trim_end_matches('Z')))
}

#[derive(Deserialize, Serialize)]
struct Data {
    object: Call,
}

fn body() -> Vec<u8> {
    let mut call = call();
    let missing = LEN - new_event().call_ended(&call).unwrap().as_bytes().len();
    call.summary.as_mut().unwrap().push_str(&"x".repeat(missing));
    let body = new_event().call_ended(&call).unwrap();
    assert_eq!(body.as_bytes().len(), LEN);
    let event = Event::from_bytes_verified_earlier(body.as_bytes()).unwrap();
    assert!(matches!(event.data, EventData::CallEnded(read) if read == call));
    body.as_bytes().to_vec()
}

fn call() -> Call {
    Call::from_json(
        br#"{"id":"call_5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a","caller":{"contact_id":
"cont_5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a","phone_number":"+4712345678","display_name":"Kari Nordmann"
},"started_at":"2026-01-01T09:30:00.123456Z","answered_at":"2026-01-01T09:30:02.500000Z","ended_at":
"2026-01-01T09:34:00.250000Z","duration_seconds":240,"summary":"Asked to move the appointment.",
"appointment_ids":["appt_5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"],"created_at":"2026-01-01T09:34:10.654321Z"}"#,
    )
    .unwrap()
}

fn new_event() -> NewEvent {
    NewEvent::new(
        EventId::from_random([0x5a; 16]),
        AccountId::from_random([0x5a; 16]),
        ApiVersion::parse("2026-01-15").unwrap(),
        Origin::voice(),
        Timestamp::parse("2026-01-01T09:34:11.654321Z").unwrap(),
    )
}
