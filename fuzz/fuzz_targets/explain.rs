//! See `webhook::explain`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::webhook::explain(bytes));
