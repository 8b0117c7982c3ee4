//! See `client::reply`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::client::reply(bytes));
