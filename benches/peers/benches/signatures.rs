//! Verifying a delivery, beside the crates that others use for it.
//!
//! Each verifies a genuine delivery of its own scheme, from its header to its verdict, the time
//! included. `webhook-verify` and `async-stripe-webhook` use this scheme, header and digest alike.
//! `async-stripe-webhook` goes on to parse the body, which here it cannot: that ends at the first
//! byte, so what is measured is its signature. `standardwebhooks` and `svix` sign the same bytes and
//! an id, and read the system's clock.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::sync::Arc;
use std::time::SystemTime;

use call_assistant::Timestamp;
use call_assistant::webhook::testing::signed_request;
use call_assistant::webhook::{Signer, SigningSecret, Verifier};
use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use http::HeaderMap;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

const SIZES: [usize; 4] = [200, 1024, 4096, 65_536];
const SECRET: &str = "whsec_bm90IGEgc2VjcmV0IGF0IGFsbCwgcmVhbGx5IG5vdA==";
const NOW: i64 = 1_767_225_600;

fn main() {
    divan::main();
}

fn body(size: usize) -> String {
    (0..size).map(|index| char::from(b"call-assistant,"[index % 15])).collect()
}

fn now() -> Timestamp {
    Timestamp::from_unix(NOW).unwrap()
}

fn signer() -> Signer {
    Signer::new(SigningSecret::parse(SECRET).unwrap())
}

#[divan::bench(args = SIZES, sample_size = 50)]
fn call_assistant(bencher: Bencher<'_, '_>, size: usize) {
    let body = body(size);
    let request = signed_request(&signer(), "ping", "evt_1", body.as_bytes(), now()).unwrap();
    let headers = request.into_parts().0.headers;
    let verifier = Verifier::new(SigningSecret::parse(SECRET).unwrap());
    bencher.counter(BytesCount::new(size)).bench_local(|| {
        verifier.verify(black_box(&headers), black_box(body.as_bytes()), now()).map(drop).unwrap();
    });
}

#[divan::bench(args = SIZES, sample_size = 50)]
fn webhook_verify(bencher: Bencher<'_, '_>, size: usize) {
    struct Still;
    impl webhook_verify::Clock for Still {
        fn now(&self) -> u64 {
            NOW.unsigned_abs()
        }
    }
    let body = body(size);
    let signature = signer().sign(body.as_bytes(), now());
    let headers = [("Stripe-Signature", signature.as_str())];
    let secret = webhook_verify::Secret::new(SECRET);
    let options = webhook_verify::VerifyOptions::default().with_clock(Some(Arc::new(Still)));
    bencher.counter(BytesCount::new(size)).bench_local(|| {
        let provider = webhook_verify::Provider::Stripe;
        let body = black_box(body.as_bytes());
        webhook_verify::verify(provider, black_box(&headers), body, &secret, options.clone())
            .unwrap();
    });
}

#[divan::bench(args = SIZES, sample_size = 50)]
fn async_stripe(bencher: Bencher<'_, '_>, size: usize) {
    let body = body(size);
    let signature = signer().sign(body.as_bytes(), now());
    bencher.counter(BytesCount::new(size)).bench_local(|| {
        let (body, header) = (black_box(body.as_str()), black_box(signature.as_str()));
        let verdict =
            stripe_webhook::Webhook::construct_event_with_timestamp(body, header, SECRET, NOW);
        assert!(matches!(verdict, Err(stripe_webhook::WebhookError::BadParse(_))));
    });
}

#[divan::bench(args = SIZES, sample_size = 50)]
fn standardwebhooks(bencher: Bencher<'_, '_>, size: usize) {
    let body = body(size);
    let webhook = standardwebhooks::Webhook::new(SECRET).unwrap();
    let signature = webhook.sign("evt_1", unix_now(), body.as_bytes()).unwrap();
    let headers = standard_headers(&signature);
    bencher.counter(BytesCount::new(size)).bench_local(|| {
        webhook.verify(black_box(body.as_bytes()), black_box(&headers)).unwrap();
    });
}

#[divan::bench(args = SIZES, sample_size = 50)]
fn svix(bencher: Bencher<'_, '_>, size: usize) {
    let body = body(size);
    let webhook = svix::webhooks::Webhook::new(SECRET).unwrap();
    let signature = webhook.sign("evt_1", unix_now(), body.as_bytes()).unwrap();
    let headers = standard_headers(&signature);
    bencher.counter(BytesCount::new(size)).bench_local(|| {
        webhook.verify(black_box(body.as_bytes()), black_box(&headers)).unwrap();
    });
}

fn unix_now() -> i64 {
    Timestamp::from(SystemTime::now()).unix_seconds()
}

fn standard_headers(signature: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", "evt_1".parse().unwrap());
    headers.insert("webhook-timestamp", unix_now().to_string().parse().unwrap());
    headers.insert("webhook-signature", signature.parse().unwrap());
    headers
}
