//! Every statement that the library's pages show, on PostgreSQL: as each stands there.

mod accept;
mod pages;
mod rate;
mod receiver;
mod steps;
mod store;
mod support;
