//! See `vocabulary::ids`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::vocabulary::ids(bytes));
