//! See `client::sync`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::client::sync(bytes));
