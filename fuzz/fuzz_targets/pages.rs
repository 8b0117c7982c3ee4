//! See `pages::pages`.
#![no_main]

#[path = "../../tests/bytes/properties/mod.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::pages::pages(bytes));
