//! See `webhook::verdict`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::webhook::verdict(bytes));
