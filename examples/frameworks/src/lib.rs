//! Receiving and sending webhooks, reading the API and serving it, with common frameworks.
//!
//! Copy the module of your framework. A module has a few lines, and needs only [`Hooks`] (which stores a
//! genuine delivery) or [`asking::run`] and [`asking::run_async`] (the loop of a flow).
//!
//! | receiving | with |
//! |---|---|
//! | [`receiving::axum_handler`] | axum, in a handler |
//! | [`receiving::axum_inbox`] | axum, in a handler that acts on an event before it answers |
//! | [`receiving::hyper`] | hyper, without a framework |
//! | [`receiving::axum_extractor`] | axum, as an extractor: a handler gets an event or is not called |
//! | [`receiving::actix`] | actix-web, which has another version of `http` |
//! | [`receiving::poem`] | poem |
//! | [`receiving::tower_layer`] | any service of tower: hyper, tonic, axum's routers |
//! | [`receiving::lambda`] | AWS Lambda behind an API gateway or a function URL |
//!
//! | asking | with |
//! |---|---|
//! | [`asking::reqwest_async`] | reqwest |
//! | [`asking::reqwest_blocking`] | reqwest without async |
//! | [`asking::ureq`] | ureq |
//! | [`asking::hyper`] | hyper |
//!
//! [`serving`] serves the API with axum, and [`posting`] sends webhooks with reqwest. `src/bin/receive.rs`
//! is the whole program of README, `receive_actix.rs` is that program with actix-web, and `send.rs` is a whole
//! sender over SQLite.

pub mod asking;
pub mod posting;
pub mod receiving;
pub mod serving;

pub use receiving::Hooks;
