//! See `webhook::signature_header`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::webhook::signature_header(bytes));
