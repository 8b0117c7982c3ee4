//! Verifying 200 B in ten processes: where a process has its stack and its heap changes what an
//! instruction costs, so that one process is one sample. Prints the smallest and the largest ratio.

#![allow(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

use std::env;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use call_assistant::Timestamp;
use call_assistant::webhook::{DeliveryHeaders, Signer, SigningSecret, Verifier, testing};

const SIZE: usize = 200;
const PROCESSES: usize = 10;
/// Set in the processes that this one starts.
const CHILD: &str = "VERIFY_BENCH_CHILD";

fn main() {
    if env::var_os(CHILD).is_some() {
        let [limit, text, map] = measured();
        println!("{limit:.1} {text:.1} {map:.1}");
        return;
    }
    let times: Vec<Vec<f64>> = (0..PROCESSES).map(|_| in_a_process()).collect();
    for (at, what) in [(1, "from the header's text"), (2, "from a header map")] {
        let mut ratios: Vec<f64> = times.iter().map(|of| of[at] / of[0]).collect();
        ratios.sort_by(f64::total_cmp);
        let (least, most) = (ratios.first().unwrap(), ratios.last().unwrap());
        println!("verify {SIZE} B {what}: {least:.2} to {most:.2} times its compressions");
    }
    for of in times {
        println!("  compressions {} ns, text {} ns, map {} ns", of[0], of[1], of[2]);
    }
}

fn in_a_process() -> Vec<f64> {
    let output = Command::new(env::current_exe().unwrap()).env(CHILD, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().map(|time| time.parse().unwrap()).collect()
}

/// The nanoseconds of the compressions, of verifying from text, and of verifying from a map.
fn measured() -> [f64; 3] {
    let secret = SigningSecret::parse(&format!("whsec_{}", "5f2c9d0e".repeat(8))).unwrap();
    let now = Timestamp::from_unix(1_767_225_600).unwrap();
    let body = vec![b'x'; SIZE];
    let signer = Signer::new(secret.clone());
    let request = testing::signed_request(&signer, "ping", "evt_1", &body, now).unwrap();
    let map = request.headers();
    let signature = signer.sign(&body, now);
    let text = DeliveryHeaders::new().signature(signature.as_str().as_bytes());
    let verifier = Verifier::new(secret);
    // As in `benches/webhook.rs`.
    let blocks = vec![[0x5a_u8; 64]; (11 + SIZE + 9).div_ceil(64)];
    let mut state = [0; 8];
    let limit = best(|| {
        sha2::block_api::compress256(&mut state, black_box(&blocks));
        sha2::block_api::compress256(&mut state, black_box(&blocks[..1]));
        state[0] > 0
    });
    let text = best(|| verifier.verify_parts(black_box(text), black_box(&body), now).is_ok());
    let map = best(|| verifier.verify(black_box(map), black_box(&body), now).is_ok());
    [limit, text, map]
}

/// The nanoseconds of one call, from the fastest of many samples: the others were interrupted.
fn best(mut call: impl FnMut() -> bool) -> f64 {
    const CALLS: u32 = 100;
    let mut sample = || {
        let begin = Instant::now();
        (0..CALLS).for_each(|_| _ = black_box(call()));
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    (0..3000).map(|_| sample()).fold(f64::INFINITY, f64::min)
}
