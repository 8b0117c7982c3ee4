//! See `events::event`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::events::event(bytes));
