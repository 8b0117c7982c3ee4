//! See `flow::flow`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::flow::flow(bytes));
