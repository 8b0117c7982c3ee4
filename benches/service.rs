//! Cursors beside the HMAC and base64 they are made of and the compressions they cannot do
//! without; rate checks of 100,000 credentials beside a map of queues.

#![allow(clippy::arithmetic_side_effects, clippy::as_conversions)]
#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId, CredentialId};
use call_assistant::rest::CallFilter;
use call_assistant::rest::Mode;
use call_assistant::rest::Quota;
use call_assistant::rest::server::RateWindows;
use call_assistant::rest::server::{Cursor, CursorKeys};
use divan::{AllocProfiler, Bencher, black_box};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

const CREDENTIALS: usize = 100_000;

/// Without filters and with both: 72 and 96 characters.
const FILTERS: [bool; 2] = [false, true];

fn now() -> Timestamp {
    Timestamp::from_parts(1_767_225_600, 123_456_000).unwrap()
}

fn account() -> AccountId {
    AccountId::parse("acct_01J9ZK5T7Q3W8XN4R6V2Y").unwrap()
}

fn keys() -> CursorKeys {
    CursorKeys::new(1, [7; 32])
}

fn cursor(filters: bool) -> Cursor {
    let both = || CallFilter::new().with_created_after(now()).with_created_before(now());
    Cursor::new(now(), CallId::parse("call_01J9ZK5T7Q3W8XN4R6V2YB").unwrap())
        .with_filter(if filters { both() } else { CallFilter::new() })
}

/// The bytes that a cursor authenticates: what it is bound to, and what it carries.
fn signed(filters: bool) -> Vec<u8> {
    let (keys, account) = (keys(), account());
    let text = keys.seal(&account, Mode::Live, &cursor(filters));
    let bytes = URL_SAFE_NO_PAD.decode(text).unwrap();
    let context = [b"calls cursor\x01\x1b", account.as_str().as_bytes()].concat();
    [&context, &bytes[..bytes.len() - 16]].concat()
}

#[divan::bench(args = FILTERS)]
fn seal(bencher: Bencher<'_, '_>, filters: bool) {
    let (keys, account, cursor) = (keys(), account(), cursor(filters));
    bencher.bench(|| keys.seal(black_box(&account), Mode::Live, black_box(&cursor)));
}

#[divan::bench(args = FILTERS)]
fn open(bencher: Bencher<'_, '_>, filters: bool) {
    let (keys, account) = (keys(), account());
    let text = keys.seal(&account, Mode::Live, &cursor(filters));
    bencher.bench(|| keys.open(black_box(&account), Mode::Live, black_box(&text)).unwrap());
}

#[divan::bench(args = FILTERS)]
fn seal_bare_hmac_and_base64(bencher: Bencher<'_, '_>, filters: bool) {
    let mac = Hmac::<Sha256>::new_from_slice(&[7; 32]).unwrap();
    let bytes = signed(filters);
    let carried = bytes.len() - account().as_str().len() - 14 + 16;
    bencher.bench(|| {
        let digest = mac.clone().chain_update(black_box(&bytes)).finalize().into_bytes();
        black_box(digest);
        URL_SAFE_NO_PAD.encode(&bytes[..carried])
    });
}

#[divan::bench(args = FILTERS)]
fn open_bare_hmac_and_base64(bencher: Bencher<'_, '_>, filters: bool) {
    let mac = Hmac::<Sha256>::new_from_slice(&[7; 32]).unwrap();
    let bytes = signed(filters);
    let text = keys().seal(&account(), Mode::Live, &cursor(filters));
    bencher.bench(|| {
        let mut decoded = [0; 128];
        URL_SAFE_NO_PAD.decode_slice(black_box(&text), &mut decoded).unwrap();
        let digest = mac.clone().chain_update(black_box(&bytes)).finalize().into_bytes();
        black_box(digest);
        black_box(decoded);
    });
}

/// What nobody does without who keeps the key's schedule: two compressions of what is signed, with
/// filters or without, and the outer one, each following from the one before.
#[divan::bench(sample_size = 50)]
fn limit_three_compressions(bencher: Bencher<'_, '_>) {
    assert!(FILTERS.iter().all(|filters| (signed(*filters).len() + 9).div_ceil(64) == 2));
    let mut state = [7; 8];
    bencher.bench_local(move || {
        sha2::block_api::compress256(&mut state, black_box(&[[9; 64]; 2]));
        sha2::block_api::compress256(&mut state, black_box(&[[9; 64]]));
        state
    });
}

/// The ids as the map keeps them, and the same as requests bring them: in an order that no cache
/// foresees, each read anew, and in memory just before it is asked for.
fn credentials() -> (Vec<CredentialId>, Vec<CredentialId>) {
    let id = |number: u64| {
        let random = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834);
        CredentialId::from_random(random.to_be_bytes())
    };
    let kept: Vec<_> = (0..).map(id).take(CREDENTIALS).collect();
    let mut order: Vec<usize> = (0..CREDENTIALS).collect();
    let mut state = 1_u64;
    for last in (1..CREDENTIALS).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        order.swap(last, (state >> 33) as usize % (last + 1));
    }
    let asked = order.iter().map(|at| CredentialId::parse(kept[*at].as_str()).unwrap());
    let asked = asked.collect();
    (kept, asked)
}

/// Each in turn, a microsecond after the last.
fn turns() -> impl FnMut() -> (usize, Timestamp) {
    let (mut turn, mut instant) = (0, now());
    move || {
        turn = (turn + 1) % CREDENTIALS;
        instant = instant.saturating_add(Duration::from_micros(1));
        (turn, instant)
    }
}

#[divan::bench(sample_count = 2_000, sample_size = 1_000)]
fn rate_check(bencher: Bencher<'_, '_>) {
    let ((kept, asked), mut next) = (credentials(), turns());
    let mut windows = RateWindows::new(1_000_000);
    kept.iter().for_each(|id| windows.check(id, Quota::READS, now()).unwrap());
    bencher.bench_local(|| {
        let (turn, now) = next();
        windows.check(&asked[turn], Quota::READS, now)
    });
}

/// As many credentials as there may be, all active, and one that is new.
#[divan::bench(args = [100_000, 1_000_000], sample_count = 200, sample_size = 1_000)]
fn rate_check_of_a_newcomer_when_full(bencher: Bencher<'_, '_>, max: usize) {
    let id = |number: usize| CredentialId::parse(&format!("cred_{number}")).unwrap();
    let kept: Vec<_> = (0..max).map(id).collect();
    let mut windows = RateWindows::new(max);
    kept.iter().for_each(|id| windows.check(id, Quota::READS, now()).unwrap());
    let newcomers: Vec<_> = (max..max + 1_000).map(id).collect();
    let (mut turn, mut instant) = (0, now());
    bencher.bench_local(|| {
        // A minute passes every 200 rounds of all, so that windows come due and are not idle.
        turn += 1;
        instant = instant.saturating_add(Duration::from_micros(10));
        let _ = windows.check(&kept[turn * 7919 % max], Quota::READS, instant);
        windows.check(&newcomers[turn % 1_000], Quota::READS, instant)
    });
}

#[divan::bench(sample_count = 2_000, sample_size = 1_000)]
fn rate_check_map_of_queues(bencher: Bencher<'_, '_>) {
    let ((kept, asked), mut next) = (credentials(), turns());
    let first = |id| (id, VecDeque::from([now()]));
    let mut windows: HashMap<CredentialId, VecDeque<Timestamp>> =
        kept.into_iter().map(first).collect();
    bencher.bench_local(|| {
        let (turn, now) = next();
        let window = windows.get_mut(&asked[turn]).unwrap();
        while window.front().is_some_and(|oldest| now.since(*oldest) >= Quota::SPAN) {
            window.pop_front();
        }
        let room = window.len() < usize::from(Quota::READS.per_minute());
        if room {
            window.push_back(now);
        }
        room
    });
}
