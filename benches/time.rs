//! Reading and writing an instant, beside the `time` crate's RFC 3339 and its serde module.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use call_assistant::Timestamp;
use divan::{AllocProfiler, Bencher, black_box};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

/// Whole seconds, milliseconds, what a database keeps, and all there is; one with an offset.
const TEXTS: [&str; 5] = [
    "2026-07-24T10:00:00Z",
    "2026-07-24T10:00:00.250Z",
    "2026-07-24T10:00:00.123456Z",
    "2026-07-24T10:00:00.123456789Z",
    "2026-07-24T12:00:00.123456+02:00",
];

fn main() {
    divan::main();
}

#[divan::bench(args = TEXTS)]
fn read(text: &str) -> Timestamp {
    Timestamp::parse(black_box(text)).unwrap()
}

#[divan::bench(args = TEXTS)]
fn read_by_time(text: &str) -> OffsetDateTime {
    OffsetDateTime::parse(black_box(text), &Rfc3339).unwrap()
}

#[divan::bench(args = TEXTS)]
fn read_json(bencher: Bencher<'_, '_>, text: &str) {
    let json = format!("\"{text}\"");
    bencher.bench(|| serde_json::from_str::<Timestamp>(black_box(&json)).unwrap());
}

#[divan::bench(args = TEXTS)]
fn read_json_by_time(bencher: Bencher<'_, '_>, text: &str) {
    let json = format!("\"{text}\"");
    bencher.bench(|| serde_json::from_str::<ByTime>(black_box(&json)).unwrap());
}

#[divan::bench(args = TEXTS)]
fn write_json(bencher: Bencher<'_, '_>, text: &str) {
    let instant = Timestamp::parse(text).unwrap();
    write(bencher, &instant);
}

#[divan::bench(args = TEXTS)]
fn write_json_by_time(bencher: Bencher<'_, '_>, text: &str) {
    let instant = OffsetDateTime::parse(text, &Rfc3339).unwrap();
    write(bencher, &ByTime(instant));
}

/// Four instants to a microsecond for each of a hundred calls: what a full page writes.
#[divan::bench]
fn write_page(bencher: Bencher<'_, '_>) {
    let instant = Timestamp::parse(TEXTS[2]).unwrap();
    write(bencher, &[[instant; 4]; 100].as_slice());
}

#[divan::bench]
fn write_page_by_time(bencher: Bencher<'_, '_>) {
    let instant = OffsetDateTime::parse(TEXTS[2], &Rfc3339).unwrap();
    write(bencher, &[[ByTime(instant); 4]; 100].as_slice());
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(transparent)]
struct ByTime(#[serde(with = "time::serde::rfc3339")] OffsetDateTime);

/// Into a buffer that has room already, as the body of a list has by its second call.
fn write(bencher: Bencher<'_, '_>, instant: &impl Serialize) {
    let mut json = Vec::with_capacity(16 * 1024);
    bencher.bench_local(|| {
        json.clear();
        serde_json::to_writer(&mut json, black_box(instant)).unwrap();
        black_box(&json).len()
    });
}
