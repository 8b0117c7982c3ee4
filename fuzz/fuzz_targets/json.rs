//! See `vocabulary::json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::vocabulary::json(bytes));
