//! A rate check of one among 1,000 credentials, which a cache holds, and among 100,000, beside
//! governor's.
//!
//! governor reads the clock by itself and answers "not until"; the exact window is handed the time
//! and says how long to wait. Both are keyed by the same ids, and asked in the same order. With its
//! default clock governor is as its users have it; with a clock that stands still it is bare.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::num::NonZeroU32;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::CredentialId;
use call_assistant::rest::Quota;
use call_assistant::rest::server::RateWindows;
use divan::Bencher;
use governor::clock::{Clock, DefaultClock, FakeRelativeClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota as GovernorQuota, RateLimiter};

fn main() {
    divan::main();
}

/// None is asked for more than 500 times, so that all are admitted.
const CREDENTIALS: [usize; 2] = [1_000, 100_000];

/// The ids as the limiter keeps them, and the same as requests bring them: in an order that no cache
/// foresees, each read anew, and in memory just before it is asked for.
fn credentials(count: usize) -> (Vec<CredentialId>, Vec<CredentialId>) {
    let id = |number: u64| {
        let random = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834);
        CredentialId::from_random(random.to_be_bytes())
    };
    let kept: Vec<_> = (0..).map(id).take(count).collect();
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = 1_u64;
    for last in (1..count).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        order.swap(last, (state >> 33) as usize % (last + 1));
    }
    let asked = order.iter().map(|at| CredentialId::parse(kept[*at].as_str()).unwrap());
    let asked = asked.collect();
    (kept, asked)
}

fn turns(count: usize) -> impl FnMut() -> usize {
    let mut turn = 0;
    move || {
        turn = (turn + 1) % count;
        turn
    }
}

#[divan::bench(args = CREDENTIALS, sample_count = 500, sample_size = 1_000)]
fn exact_window(bencher: Bencher<'_, '_>, count: usize) {
    let ((kept, asked), mut turn) = (credentials(count), turns(count));
    let mut now = Timestamp::from_unix(1_767_225_600).unwrap();
    let mut windows = RateWindows::new(1_000_000);
    kept.iter().for_each(|id| windows.check(id, Quota::READS, now).unwrap());
    bencher.bench_local(|| {
        now = now.saturating_add(Duration::from_micros(1));
        windows.check(&asked[turn()], Quota::READS, now)
    });
}

/// The time read from the system's clock, as a host does once a request.
#[divan::bench(args = CREDENTIALS, sample_count = 500, sample_size = 1_000)]
fn exact_window_and_clock(bencher: Bencher<'_, '_>, count: usize) {
    let ((kept, asked), mut turn) = (credentials(count), turns(count));
    let mut windows = RateWindows::new(1_000_000);
    let now = Timestamp::from(std::time::SystemTime::now());
    kept.iter().for_each(|id| windows.check(id, Quota::READS, now).unwrap());
    bencher.bench_local(|| {
        let now = Timestamp::from(std::time::SystemTime::now());
        windows.check(&asked[turn()], Quota::READS, now)
    });
}

#[divan::bench(args = CREDENTIALS, sample_count = 500, sample_size = 1_000)]
fn governor_keyed(bencher: Bencher<'_, '_>, count: usize) {
    governor(bencher, count, DefaultClock::default());
}

#[divan::bench(args = CREDENTIALS, sample_count = 500, sample_size = 1_000)]
fn governor_keyed_with_a_still_clock(bencher: Bencher<'_, '_>, count: usize) {
    governor(bencher, count, FakeRelativeClock::default());
}

fn governor<C: Clock>(bencher: Bencher<'_, '_>, count: usize, clock: C) {
    let ((kept, asked), mut turn) = (credentials(count), turns(count));
    let quota = GovernorQuota::per_minute(NonZeroU32::new(600).unwrap());
    let limiter = RateLimiter::<
        CredentialId,
        DefaultKeyedStateStore<_>,
        C,
        NoOpMiddleware<C::Instant>,
    >::new(quota, DefaultKeyedStateStore::default(), clock);
    kept.iter().for_each(|id| limiter.check_key(id).unwrap());
    bencher.bench_local(|| limiter.check_key(&asked[turn()]).is_ok());
}
