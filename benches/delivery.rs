//! A transition; rows as columns; step 4 for a batch; what to send next beside a bare heap of the
//! same entries and beside reads of memory; an attempt's request beside the bare digest of its body.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    self, Delivery, DeliveryColumns, DueDelivery, DueKind, EndedAttempt, EndpointHealth,
    EndpointUrl, Outcome, Planner, RETRY_WAITS, SenderLimits, SignedDestination,
};
use call_assistant::webhook::{Signer, SigningSecret};
use divan::{AllocProfiler, Bencher, black_box};
use hmac::{Hmac, KeyInit, Mac};
use http::StatusCode;
use sha2::Sha256;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

fn start() -> Timestamp {
    Timestamp::from_unix(1_767_225_600).unwrap()
}

/// A ping of this size, in bytes.
fn event(size: usize) -> EventBody {
    let start = r#"{"id":"evt_00000000000000000000000000","type":"ping","created_at":"2026-01-01T00:00:00Z","api_version":"2026-01-15","account_id":"acct_1","origin":null,"data":{"message":""#;
    let message = "a".repeat(size - start.len() - 3);
    EventBody::from_stored(format!("{start}{message}\"}}}}")).unwrap()
}

mod transition {
    use super::*;

    #[divan::bench]
    fn begin(bencher: Bencher<'_, '_>) {
        let event = event(200);
        bencher.bench(|| {
            let endpoint = EndpointHealth::new(1, start());
            let mut delivery = Delivery::accept(&event, &endpoint, start());
            let _ = black_box(delivery.begin(black_box(&endpoint), black_box(start())));
            delivery
        });
    }

    #[divan::bench]
    fn begin_fail_and_record(bencher: Bencher<'_, '_>) {
        let mut endpoint = EndpointHealth::new(1, start());
        let delivery = Delivery::accept(&event(200), &endpoint, start());
        bencher.bench_local(|| {
            let mut delivery = black_box(delivery);
            let attempt = delivery.begin(&endpoint, start()).unwrap();
            let report = delivery.finish(&attempt, black_box(Outcome::Reset), start()).unwrap();
            (endpoint.record(report, start()).unwrap(), delivery)
        });
    }

    #[divan::bench]
    fn stored_as_json(bencher: Bencher<'_, '_>) {
        let delivery = Delivery::accept(&event(200), &EndpointHealth::new(1, start()), start());
        bencher.bench(|| serde_json::to_string(black_box(&delivery)).unwrap());
    }
}

/// A row to columns and back, beside the same by JSON values.
mod columns {
    use super::*;

    fn row() -> Delivery {
        Delivery::accept(&event(200), &EndpointHealth::new(1, start()), start())
    }

    #[divan::bench]
    fn write(bencher: Bencher<'_, '_>) {
        let row = row();
        bencher.bench(|| {
            let columns = DeliveryColumns::from(black_box(row));
            (columns.status.as_str(), columns.at.unix_micros(), columns)
        });
    }

    #[divan::bench]
    fn read(bencher: Bencher<'_, '_>) {
        let columns = DeliveryColumns::from(row());
        let (status, at) = (columns.status.as_str(), columns.at.unix_micros());
        bencher.bench(|| {
            let status = black_box(status).parse().unwrap();
            let at = Timestamp::from_unix_micros(black_box(at)).unwrap();
            Delivery::from_columns(7, 1, DeliveryColumns { status, at, ..black_box(columns) })
                .unwrap()
        });
    }

    #[divan::bench]
    fn write_as_json_value(bencher: Bencher<'_, '_>) {
        let row = row();
        bencher.bench(|| serde_json::to_value(black_box(row)).unwrap());
    }

    #[divan::bench]
    fn read_as_json_value(bencher: Bencher<'_, '_>) {
        let value = serde_json::to_value(row()).unwrap();
        bencher.with_inputs(|| value.clone()).bench_values(|value| {
            serde_json::from_value::<DeliveryColumns>(value)
                .map(|columns| Delivery::from_columns(7, 1, columns))
                .unwrap()
        });
    }
}

/// Step 4 for a batch, of as many endpoints.
mod settle {
    use super::*;

    const BATCH: usize = 128;

    #[divan::bench(args = [1, 16, 128], counters = [divan::counter::ItemsCount::new(BATCH)])]
    fn batch(bencher: Bencher<'_, '_>, endpoints: i64) {
        let endpoint = EndpointHealth::new(1, start());
        let accepted = Delivery::accept(&event(200), &endpoint, start());
        let mut rows = BTreeMap::new();
        let ended: Vec<_> = (0..BATCH as i64)
            .map(|delivery| {
                let mut row = accepted;
                let attempt = row.begin(&endpoint, start()).unwrap();
                rows.insert(delivery, row);
                let outcome = Outcome::Answered(StatusCode::NO_CONTENT);
                let endpoint = delivery % endpoints;
                EndedAttempt { delivery, endpoint, attempt, outcome, at: start(), response: None }
            })
            .collect();
        let endpoints: BTreeMap<_, _> = (0..endpoints).map(|id| (id, endpoint)).collect();
        bencher.bench(|| sender::settle(black_box(&ended), &rows, &endpoints));
    }
}

/// A million pending. Each step takes what is due, and adds it again after one of the waits; time
/// goes on as the heads of the queues do.
mod due {
    use super::*;

    const PENDING: u64 = 1_000_000;
    const STEPS: usize = 1_000;

    fn wait(delivery: u64) -> Duration {
        RETRY_WAITS
            [(delivery.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % RETRY_WAITS.len()]
    }

    /// In the order in which a schedule adds them.
    fn entries(endpoints: u64) -> Vec<(u64, u32, Timestamp)> {
        let mut all: Vec<_> = (0..PENDING)
            .map(|delivery| {
                let wait = wait(delivery);
                let share = delivery.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40;
                let left = wait.as_nanos() as u64 / (1 << 24) * share;
                let due = start().saturating_add(Duration::from_nanos(left));
                (delivery, (delivery % endpoints) as u32, due)
            })
            .collect();
        all.sort_by_key(|(_, _, due)| *due);
        all
    }

    /// An account has ten endpoints.
    fn pending(delivery: u64, endpoint: u32, due: Timestamp) -> DueDelivery {
        let (account, shard, event_created_at) = (endpoint / 10, 0, start());
        let kind = DueKind::First;
        DueDelivery { delivery, endpoint, account, shard, event_created_at, due, kind }
    }

    const DONE: Outcome = Outcome::Answered(StatusCode::NO_CONTENT);
    const TOOK: Duration = Duration::from_millis(20);

    fn filled(endpoints: u64) -> Planner {
        let limits = SenderLimits { overall: 1_000, per_endpoint: 10 };
        let mut planner = Planner::new(limits);
        // Each wait's queue in its own order, as it comes about.
        let all = entries(endpoints);
        for class in RETRY_WAITS.iter().copied() {
            for (delivery, endpoint, due) in all.iter().filter(|(d, ..)| wait(*d) == class) {
                planner.add(pending(*delivery, *endpoint, *due));
            }
        }
        planner
    }

    /// As a host does it: takes what is due until there is nothing, then sleeps.
    fn step(planner: &mut Planner, now: &mut Timestamp) -> u64 {
        let DueDelivery { delivery, endpoint, .. } = loop {
            match planner.next(*now) {
                Some(next) => break next,
                None => *now = planner.next_due().unwrap(),
            }
        };
        let due = now.saturating_add(wait(delivery));
        planner.release(delivery, Some((due, DueKind::First)));
        planner.finished(endpoint, DONE, TOOK);
        delivery
    }

    #[divan::bench(args = [1_000, 100_000, 1_000_000], counters = [divan::counter::ItemsCount::new(STEPS)])]
    fn planner(bencher: Bencher<'_, '_>, endpoints: u64) {
        let mut planner = filled(endpoints);
        let mut now = start();
        bencher.bench_local(|| (0..STEPS).map(|_| step(&mut planner, &mut now)).max());
    }

    /// Everything is due, and stands in lines.
    #[divan::bench(args = [1_000, 100_000, 1_000_000], counters = [divan::counter::ItemsCount::new(STEPS)])]
    fn planner_behind(bencher: Bencher<'_, '_>, endpoints: u64) {
        let mut planner = filled(endpoints);
        let now = start().saturating_add(Duration::from_secs(86_400));
        bencher.bench_local(|| {
            for _ in 0..STEPS {
                let DueDelivery { delivery, endpoint, .. } = planner.next(now).unwrap();
                planner.release(delivery, Some((now, DueKind::First)));
                planner.finished(endpoint, DONE, TOOK);
            }
        });
    }

    /// A million added and let go: `max alloc` by a million is what a pending delivery takes.
    #[divan::bench(sample_count = 5, counters = [divan::counter::ItemsCount::new(PENDING)])]
    fn memory(bencher: Bencher<'_, '_>) {
        let mut entries = entries(1);
        entries.sort_unstable();
        bencher.bench_local(|| {
            let mut planner = Planner::new(SenderLimits { overall: 1, per_endpoint: 1 });
            for (delivery, endpoint, _) in &entries {
                let now = start().saturating_add(Duration::from_millis(*delivery));
                planner.add(pending(*delivery, *endpoint, now.saturating_add(wait(*delivery))));
            }
            planner
        });
    }

    /// Reads of 32 MiB in no order, each at the place that the one before names: what a step pays for an
    /// endpoint that is in no cache.
    #[divan::bench(counters = [divan::counter::ItemsCount::new(STEPS)])]
    fn cold_reads(bencher: Bencher<'_, '_>) {
        const PLACES: usize = 1 << 20;
        let next: Vec<[usize; 4]> =
            (0..PLACES).map(|at| [(at * 1_664_525 + 1) % PLACES; 4]).collect();
        let mut at = 0;
        bencher.bench_local(|| {
            for _ in 0..STEPS {
                at = next[at][0];
            }
            at
        });
    }

    #[divan::bench(counters = [divan::counter::ItemsCount::new(STEPS)])]
    fn binary_heap(bencher: Bencher<'_, '_>) {
        let mut heap: BinaryHeap<_> =
            entries(1_000).into_iter().map(|(d, e, due)| Reverse((due, d, e))).collect();
        bencher.bench_local(|| {
            for _ in 0..STEPS {
                let Reverse((now, delivery, endpoint)) = heap.pop().unwrap();
                let due = now.saturating_add(wait(delivery));
                heap.push(Reverse((due, delivery, endpoint)));
            }
        });
    }
}

mod attempt {
    use super::*;

    const SIZES: [usize; 3] = [200, 1_024, 4_096];

    #[divan::bench(args = SIZES)]
    fn request(bencher: Bencher<'_, '_>, size: usize) {
        let endpoint = EndpointHealth::new(1, start());
        let mut delivery = Delivery::accept(&event(200), &endpoint, start());
        let attempt = delivery.begin(&endpoint, start()).unwrap();
        let target = EndpointUrl::parse("https://hooks.example.com/calls").unwrap();
        let signer = Signer::new(SigningSecret::parse("whsec_shown-once-and-kept").unwrap());
        let destination = SignedDestination::new(&endpoint, target, signer);
        let event = event(size);
        bencher.bench(|| attempt.request(&destination, black_box(&event), start()));
    }

    /// The digest alone, its key schedule cached.
    #[divan::bench(args = SIZES)]
    fn bare_hmac(bencher: Bencher<'_, '_>, size: usize) {
        let key = Hmac::<Sha256>::new_from_slice(b"whsec_shown-once-and-kept").unwrap();
        let body = vec![b'a'; size];
        bencher.bench(|| {
            let mut mac = key.clone();
            mac.update(b"1767225600.");
            mac.update(black_box(&body));
            mac.finalize().into_bytes()
        });
    }
}

mod target {
    use super::*;

    #[divan::bench]
    fn parse() -> EndpointUrl {
        EndpointUrl::parse(black_box("https://hooks.example.com/calls?a=b")).unwrap()
    }

    #[divan::bench(args = ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"])]
    fn address(bencher: Bencher<'_, '_>, text: &str) {
        let (url, address) = (parse(), text.parse().unwrap());
        bencher.bench(|| url.check(black_box(address)).is_ok());
    }
}
