//! See `client::retry_after`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::client::retry_after(bytes));
