//! See `pages::pages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::pages::pages(bytes));
