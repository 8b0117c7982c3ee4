//! See `flow::flow`.
#![no_main]

#[path = "../../tests/bytes/properties/mod.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::flow::flow(bytes));
