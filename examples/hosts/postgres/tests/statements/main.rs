//! Every statement that the library's pages show, on PostgreSQL: as each stands there.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod accounts;
mod pages;
mod rate;
mod receiver;
mod support;
