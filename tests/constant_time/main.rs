//! Nothing but the verdict branches on a secret (SIG-3): the bytes of signing secrets, API keys and
//! cursor keys are marked as undefined for valgrind's memcheck, which then reports every branch and
//! every address that anything computed from them decides.
//!
//! What remains in the time taken is how long the message is, and the verdict. Where a processor
//! computes SHA-256 itself valgrind hides that from the program; the instructions for it take no
//! branch either.
//!
//! `cargo test` looks at the code as it builds it. With
//! `--config profile.dev.package.call-assistant.opt-level=1` it is hardly optimised, and a comparison that
//! calls `memcmp` is found; `--config .ci/optimised.toml` shows what a compiler makes of it in a release.
//! Without valgrind there is nothing to ask, and the test passes over.

#![cfg(target_os = "linux")]
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
#![allow(clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fmt;
use std::hint::{black_box, spin_loop};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::thread;

use call_assistant::id::{AccountId, CallId};
use call_assistant::rest::server::{Cursor, CursorError, CursorKeys, KeyDigest};
use call_assistant::rest::{ApiKey, Mode};
use call_assistant::webhook::{DeliveryHeaders, Signer, SigningSecret, Verifier, VerifyError};
use call_assistant::{Product, Timestamp};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const BODY: &[u8] = br#"{"id":"evt_1"}"#;

/// Set in the process that valgrind runs.
const MARKED: &str = "CONSTANT_TIME_MARKED";

/// The function of each part, and in which functions alone it may branch. Of the verifier's two the
/// one returns the verdict and the other matches on it, where an optimiser may move the branch; keys
/// are compared for a host, whose branch is this test's own.
const PARTS: [(&str, &[&str]); 3] = [
    ("verify_deliveries", &["verdict", "find"]),
    ("compare_keys", &["compare_keys"]),
    ("open_cursors", &["open"]),
];

#[test]
fn nothing_but_the_verdict_branches_on_a_secret() {
    // Some valgrinds are there and do not start: they want symbols that the C library has lost.
    let starts = Command::new("valgrind").arg("true").output().is_ok_and(|o| o.status.success());
    if !starts || Command::new("vgdb").arg("--help").output().is_err() {
        println!("skipped: no valgrind, or no vgdb, to follow secrets with");
        return;
    }
    let found = memcheck();
    let mut places = PARTS.map(|_| BTreeSet::new());
    for one in &found {
        let part = PARTS.iter().position(|(part, _)| one.is_below(part));
        let part = part.unwrap_or_else(|| panic!("outside of what is looked at: {one}"));
        let (name, verdict) = PARTS[part];
        assert!(one.is_jump && one.is_in(verdict), "{name} depends on a secret elsewhere: {one}");
        places[part].insert(&one.address);
    }
    for ((name, _), places) in PARTS.iter().zip(&places) {
        // Without any the marks would have been lost on the way, and nothing shown.
        assert!(!places.is_empty(), "{name} depends on no secret at all");
    }
    let [_, _, opening] = places;
    assert_eq!(opening.len(), 1, "cursors are judged once");
}

/// What memcheck tells of the process in which all secrets are marked.
fn memcheck() -> Vec<Found> {
    let mut child = Command::new("valgrind")
        .args(["--tool=memcheck", "--leak-check=no", "--error-limit=no", "--num-callers=40"])
        .args(["--vgdb=yes", "--vgdb-poll=1000"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "of_marked_secrets", "--nocapture", "--test-threads=1"])
        .env(MARKED, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap());
    loop {
        let mut line = String::new();
        assert!(told.read_line(&mut line).unwrap() > 0, "{:?}", child.wait_with_output());
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("mark"), Some(address), Some(len)) => mark(child.id(), address, len),
            (Some("go"), ..) => break,
            _ => {}
        }
    }
    child.stdout = Some(told.into_inner());
    // Closes the standard input it waits at.
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    Found::read(&told)
}

/// Memory is marked from outside, by valgrind's debugger: from within it takes `unsafe`.
fn mark(process: u32, address: &str, len: &str) {
    let process = format!("--pid={process}");
    let mut vgdb = Command::new("vgdb");
    let output = vgdb.args([&process, "make_memory", "undefined", address, len]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// One place at which something undefined counts.
#[derive(Default)]
struct Found {
    what: String,
    /// A branch, and not an address that was computed.
    is_jump: bool,
    /// Of the instruction.
    address: String,
    /// The functions that were being called, the innermost first, with file and line.
    calls: Vec<String>,
}

impl Found {
    fn read(told: &str) -> Vec<Self> {
        let lines = told.lines().filter_map(|line| line.split_once("== ")).map(|(_, rest)| rest);
        let mut found: Vec<Self> = Vec::new();
        for line in lines {
            if line.starts_with("Conditional jump") || line.starts_with("Use of uninit") {
                let is_jump = line.starts_with("Conditional jump");
                found.push(Self { what: line.to_owned(), is_jump, ..Self::default() });
            } else if let Some(("at" | "by", call)) = line.trim().split_once(" 0x")
                && let (Some(found), Some((at, call))) = (found.last_mut(), call.split_once(": "))
            {
                if found.calls.is_empty() {
                    found.address = at.to_owned();
                }
                found.calls.push(call.to_owned());
            }
        }
        found
    }

    fn is_below(&self, part: &str) -> bool {
        self.calls.iter().any(|call| name(call) == part)
    }

    fn is_in(&self, functions: &[&str]) -> bool {
        self.calls.first().is_some_and(|call| functions.contains(&name(call)))
    }
}

/// The function's own name.
fn name(call: &str) -> &str {
    let (path, _) = call.split_once(" (").unwrap_or((call, ""));
    path.rsplit("::").next().unwrap_or(path)
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what)?;
        let until = self.calls.iter().position(|call| name(call) == "of_marked_secrets");
        let calls = self.calls.iter().take(until.unwrap_or(usize::MAX));
        calls.into_iter().try_for_each(|call| writeln!(f, "    {call}"))
    }
}

/// The process that valgrind runs. By itself it does nothing.
#[test]
fn of_marked_secrets() {
    if std::env::var(MARKED).is_err() {
        return;
    }
    // Everything that shows them, or reads them digit by digit, is done before they are marked.
    let secrets = ["whsec_0123456789abcdef", "whsec_of-another-endpoint"]
        .map(|text| SigningSecret::parse(text).unwrap());
    let headers = Headers::of(&secrets);
    let [key, same_key] = ["service_live_0123456789abcdef0123456789abcdef"; 2]
        .map(|text| ApiKey::parse_for(&Product::default(), text).unwrap());
    let stored = Box::new([key.digest(), KeyDigest::compute(b"another")]);
    let cursor_key = Box::new([7; 32]);
    let cursors = Cursors::of(*cursor_key);

    println!();
    let [first, second] = secrets.each_ref().map(|secret| secret.reveal().as_bytes());
    let [key_text, same_text] = [&key, &same_key].map(|key| key.reveal().as_bytes());
    let [one, other] = stored.each_ref().map(|digest| &digest.as_bytes()[..]);
    for bytes in [first, second, key_text, same_text, one, other, &cursor_key[..]] {
        println!("mark {:p} {}", bytes.as_ptr(), bytes.len());
    }
    println!("go");
    // Busy, since valgrind listens to its debugger between blocks of code that it runs.
    let marked = thread::spawn(|| std::io::stdin().read_to_end(&mut Vec::new()).unwrap());
    while !marked.is_finished() {
        spin_loop();
    }
    verify_deliveries(black_box(&secrets), &headers);
    compare_keys(black_box([&key, &same_key]), black_box(&stored));
    open_cursors(black_box(&cursor_key), &cursors);
}

/// Headers that are right, and wrong in one place or another.
struct Headers {
    right: String,
    others: [String; 4],
    uppercase: String,
    /// Of several digests the last one is right, or of several secrets the second.
    late: [String; 2],
}

impl Headers {
    fn of([first, second]: &[SigningSecret; 2]) -> Self {
        let sign = |secret: &SigningSecret| {
            Signer::new(secret.clone()).sign(BODY, NOW).as_str().to_owned()
        };
        let right = sign(first);
        let (time, digest) = right.split_once("v1=").unwrap();
        let wrong = |from: usize, until: usize| {
            let mut digits = digest.to_owned().into_bytes();
            for digit in &mut digits[from..until] {
                *digit = if *digit == b'0' { b'1' } else { b'0' };
            }
            format!("{time}v1={}", String::from_utf8(digits).unwrap())
        };
        let others = [wrong(0, 1), wrong(31, 32), wrong(63, 64), wrong(0, 64)];
        let late = [format!("{},v1={digest}", others[0]), sign(second)];
        let uppercase = format!("{time}v1={}", digest.to_uppercase());
        Self { right, others, uppercase, late }
    }
}

/// SIG-3.
#[inline(never)]
fn verify_deliveries([first, second]: &[SigningSecret; 2], headers: &Headers) {
    let verifier = Verifier::new(first.clone()).with_secret(second.clone());
    let verify = |text: &str| {
        let headers = DeliveryHeaders::new().signature(text.as_bytes());
        verifier.verify_parts(headers, BODY, NOW).map(|verified| verified.secret_index())
    };
    assert_eq!(verify(&headers.right), Ok(0));
    for text in &headers.others {
        assert_eq!(verify(text), Err(VerifyError::Mismatch));
    }
    // Which of them it was is not looked at here: it is found without a branch.
    let uppercase = verify(&headers.uppercase);
    assert!(matches!(uppercase, Err(VerifyError::UppercaseDigest { .. })));
    assert_eq!(headers.late.each_ref().map(|text| verify(text)), [Ok(0), Ok(1)]);
}

/// A key that is presented with those that are stored, and two keys with each other: KEY-2.
#[inline(never)]
fn compare_keys([key, same_key]: [&ApiKey; 2], [stored, other]: &[KeyDigest; 2]) {
    let presented = key.digest();
    for (same, expected) in
        [(presented == *stored, true), (presented == *other, false), (key == same_key, true)]
    {
        if black_box(same) != expected {
            panic!("keys are not compared right");
        }
    }
}

/// A cursor, and others that differ in their first byte, their last, or their account.
struct Cursors {
    account: AccountId,
    right: String,
    others: [String; 3],
}

impl Cursors {
    fn of(key: [u8; 32]) -> Self {
        let keys = CursorKeys::new(1, key);
        let [account, other] = ["acct_1", "acct_2"].map(|id| AccountId::parse(id).unwrap());
        let id = CallId::parse("call_000").unwrap();
        let cursor = Cursor::new(NOW, id);
        let right = keys.seal(&account, Mode::Live, &cursor);
        let digit = |at: usize| {
            let mut text = right.clone().into_bytes();
            text[at] = if text[at] == b'A' { b'B' } else { b'A' };
            String::from_utf8(text).unwrap()
        };
        let theirs = keys.seal(&other, Mode::Live, &cursor);
        let others = [digit(right.len() - 22), digit(right.len() - 3), theirs];
        Self { account, right, others }
    }
}

#[inline(never)]
fn open_cursors(key: &[u8; 32], cursors: &Cursors) {
    let keys = CursorKeys::new(1, *key);
    let open = |text: &str| keys.open(&cursors.account, Mode::Live, text);
    assert!(open(&cursors.right).is_ok());
    for text in &cursors.others {
        assert_eq!(open(text), Err(CursorError::Digest));
    }
}
