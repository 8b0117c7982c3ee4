//! See `pages::cursor`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::pages::cursor(bytes));
