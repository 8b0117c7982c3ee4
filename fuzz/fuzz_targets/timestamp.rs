//! See `time::timestamp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::time::timestamp(bytes));
