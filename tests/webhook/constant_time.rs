//! How many instructions a verification takes, as valgrind counts them (SIG-3): as many wherever
//! two digests differ, and whichever of several is right. That finds a comparison in a loop that
//! stops early; one of the C library's, which takes 32 bytes at once, it would not find.
//!
//! Without valgrind there is nothing to count with, and the test passes over.

use std::hint::black_box;
use std::process::Command;

use call_assistant::webhook::DeliveryHeaders;

use crate::{NOW, at, signer, verifier};

const HEADER: &str = "CONSTANT_TIME_HEADER";
const BODY: &[u8] = br#"{"id":"evt_1"}"#;

/// The one verification that is counted, in a process of its own. By itself it does nothing.
#[test]
fn of_a_header() {
    let Ok(header) = std::env::var(HEADER) else { return };
    let headers = DeliveryHeaders::new().signature(header.as_bytes());
    let _ = black_box(verifier().verify_parts(black_box(headers), BODY, at(NOW)));
}

/// The instructions within the verification of such a header.
fn instructions(header: &str) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*verify_parts*")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "constant_time::of_a_header", "--test-threads=1"])
        .env(HEADER, header)
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    let count = told.lines().find_map(|line| line.split_once("Collected : "));
    let count = count.unwrap_or_else(|| panic!("no count: {told}")).1.trim().parse().unwrap();
    assert!(count > 1_000, "nothing was counted: {told}");
    count
}

/// Another digit of the same kind: hex is read in time that depends on what was received, which
/// is no secret.
fn other(digit: char) -> char {
    match digit {
        '9' => '8',
        'f' => 'e',
        _ => char::from(u8::try_from(digit).unwrap() + 1),
    }
}

#[test]
fn it_takes_as_long_wherever_digests_differ() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("passed over: no valgrind to count instructions with");
        return;
    }
    let signature = signer().sign(BODY, at(NOW));
    let right = signature.as_str().split_once("v1=").unwrap().1;
    let wrong = |places: std::ops::Range<usize>| -> String {
        let change = |(at, digit)| if places.contains(&at) { other(digit) } else { digit };
        right.chars().enumerate().map(change).collect()
    };
    let first = wrong(0..1);
    let one = |digest: &str| instructions(&format!("t={NOW},v1={digest}"));
    let expected = one(&first);
    for places in [63..64, 31..32, 0..64] {
        assert_eq!(one(&wrong(places.clone())), expected, "digits {places:?}");
    }
    let two = |one: &str, two: &str| instructions(&format!("t={NOW},v1={one},v1={two}"));
    assert_eq!(two(right, &first), two(&first, right), "which of two is right");
}
