//! See `rest::head`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::rest::head(bytes));
