//! Verifying and signing beside what they cannot do without.
//!
//! - `limit`: the chained SHA-256 compressions of the message and nothing else.
//! - `hmac_sha256`: HMAC-SHA256 with a reused key; nothing is read, compared or written.

#![allow(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

use call_assistant::Timestamp;
use call_assistant::webhook::{DeliveryHeaders, Signer, SigningSecret, Verifier, testing};
use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

const SIZES: [usize; 5] = [200, 1024, 4096, 65_536, 1_048_576];
const SECRET: &str = "whsec_5f2c9d0e7b1a4c6f8e3d2b1a0f9e8d7c6b5a493827160f5e4d3c2b1a09f8e7d6";

fn main() {
    divan::main();
}

fn secret() -> SigningSecret {
    SigningSecret::parse(SECRET).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_unix(1_767_225_600).unwrap()
}

fn body(size: usize) -> Vec<u8> {
    (0..size).map(|index| b' ' + u8::try_from(index % 90).unwrap()).collect()
}

/// As many compressions as the message needs when the key's two are kept: the message after its
/// timestamp and period, padded with at least nine bytes, and the outer one. Each follows from the
/// one before, and one message's from the last one's, as if its bytes had to be waited for.
#[divan::bench(args = SIZES, sample_size = 50)]
fn limit(bencher: Bencher<'_, '_>, size: usize) {
    let blocks = vec![[0x5a_u8; 64]; (11 + size + 9).div_ceil(64)];
    let mut state = [0; 8];
    bencher.counter(BytesCount::new(size)).bench_local(move || {
        sha2::block_api::compress256(&mut state, black_box(&blocks));
        sha2::block_api::compress256(&mut state, black_box(&blocks[..1]));
        state
    });
}

#[divan::bench(args = SIZES, sample_size = 50)]
fn hmac_sha256(bencher: Bencher<'_, '_>, size: usize) {
    let body = body(size);
    let key = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    bencher.counter(BytesCount::new(size)).bench_local(|| {
        let mut mac = black_box(&key).clone();
        mac.update(b"1767225600.");
        mac.update(black_box(&body));
        mac.finalize().into_bytes()
    });
}

/// From the header's text: read it, judge the time, compute, compare.
#[divan::bench(args = SIZES, sample_size = 50)]
fn verify(bencher: Bencher<'_, '_>, size: usize) {
    let body = body(size);
    let signature = Signer::new(secret()).sign(&body, now());
    let headers = DeliveryHeaders::new().signature(signature.as_str().as_bytes());
    let verifier = Verifier::new(secret());
    bencher
        .counter(BytesCount::new(size))
        .bench_local(|| verifier.verify_parts(black_box(headers), black_box(&body), now()).is_ok());
}

/// From an `http` header map with the five headers.
#[divan::bench(args = SIZES, sample_size = 50)]
fn verify_header_map(bencher: Bencher<'_, '_>, size: usize) {
    let body = body(size);
    let request = testing::signed_request(&Signer::new(secret()), "ping", "evt_1", &body, now());
    let headers = request.unwrap().into_parts().0.headers;
    let verifier = Verifier::new(secret());
    bencher
        .counter(BytesCount::new(size))
        .bench_local(|| verifier.verify(black_box(&headers), black_box(&body), now()).is_ok());
}

/// To the header's text.
#[divan::bench(args = SIZES, sample_size = 50)]
fn sign(bencher: Bencher<'_, '_>, size: usize) {
    let body = body(size);
    let signer = Signer::new(secret());
    bencher
        .counter(BytesCount::new(size))
        .bench_local(|| black_box(signer.sign(black_box(&body), now())).as_str().len());
}
