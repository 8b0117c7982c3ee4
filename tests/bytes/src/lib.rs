//! Properties of bytes, written once: the test of this crate runs them on random input and on the corpora,
//! the fuzz targets on what the fuzzer finds. Each takes any bytes and panics if it does not hold.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

pub mod cause;
pub mod client;
pub mod delivery;
pub mod events;
pub mod flow;
pub mod pages;
pub mod rest;
pub mod time;
pub mod vocabulary;
pub mod webhook;

/// A name, which is also the fuzz target's and the corpus's, and its property.
pub type Property = (&'static str, fn(&[u8]));

/// Every property there is.
pub const ALL: &[Property] = &[
    ("cause", cause::cause),
    ("cursor", pages::cursor),
    ("delivery", delivery::delivery),
    ("event", events::event),
    ("explain", webhook::explain),
    ("flow", flow::flow),
    ("head", rest::head),
    ("ids", vocabulary::ids),
    ("json", vocabulary::json),
    ("pages", pages::pages),
    ("rate", pages::rate),
    ("reply", client::reply),
    ("retry_after", client::retry_after),
    ("sync", client::sync),
    ("target", delivery::target),
    ("timestamp", time::timestamp),
    ("verdict", webhook::verdict),
    ("verify", webhook::verify),
];
