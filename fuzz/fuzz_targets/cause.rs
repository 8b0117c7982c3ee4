//! See `cause::cause`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::cause::cause(bytes));
