//! See `delivery::delivery`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::delivery::delivery(bytes));
