//! See `client::retry_after`.
#![no_main]

#[path = "../../tests/bytes/properties/mod.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::client::retry_after(bytes));
