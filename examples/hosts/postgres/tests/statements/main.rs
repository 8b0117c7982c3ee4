//! Every statement that the library's pages show, on PostgreSQL: as each stands there.
#![allow(clippy::restriction, clippy::disallowed_methods)]
#![deny(clippy::dbg_macro, clippy::todo, clippy::unimplemented, clippy::unreachable)]

mod accounts;
mod pages;
mod rate;
mod receiver;
mod support;
