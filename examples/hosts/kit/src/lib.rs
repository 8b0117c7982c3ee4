//! What the hosts of the service share: everything but the store.
//!
//! ```
//! # async fn run<S: host::store::ApiStore + host::store::Store>(
//! #     store: S, cursor_keys: call_assistant::rest::server::CursorKeys,
//! #     listener: tokio::net::TcpListener, limits: host::serve::Limits, stop: host::shutdown::Shutdown,
//! # ) {
//! use host::{api::Api, serve::serve};
//!
//! let api = Api::new(store.clone(), cursor_keys);
//! serve(listener, limits, move |request, peer| api.clone().answer(request, peer), stop).await;
//! # }
//! ```
//!
//! There are two hosts of one service. `examples/hosts/memory` keeps everything in memory, and
//! `examples/hosts/postgres` in PostgreSQL. Both answer the same public API and the same dashboard, read
//! the same `--data` file and send webhooks in the same way. This crate is all of that, over three
//! traits: [`store::ApiStore`] for the public API, [`store::Store`] for the dashboard and
//! [`sender::rows::Rows`] for what is sent.
//!
//! | | |
//! |---|---|
//! | [`store`] | the two traits, and why a store refuses |
//! | [`rows`], [`plan`] | what goes through them: accounts, endpoints, deliveries, filters |
//! | [`api`] | the public API |
//! | [`dashboard`], [`answer`] | the dashboard: page, routes, JSON; what it answers |
//! | [`access`], [`login`], [`scope`] | who may use it; cookies and links; what a login may see and change |
//! | [`data`], [`demo`], [`input`] | accounts to begin with, from a file or the demonstration |
//! | [`first_line`] | what a host prints when it has started |
//! | [`monitor`], [`process`] | `/metrics`, `/healthz`, `/readyz`; what the system knows of a process |
//! | [`post`], [`signed`] | one POST to an endpoint; its request, shown again |
//! | [`sender`] | the sender of webhooks, over any store of rows |
//! | [`scale`] | `--time-scale` and `--timeout-scale` |
//! | [`program`], [`watch`] | how a program begins and ends; tasks that must not end before it |
//! | [`serve`], [`peer`], [`tls`], [`shutdown`] | connections, their ends, certificates |
//! | [`log`], [`trace`] | the log; the trace of a caller, for its lines |
//! | [`terminal`] | how commands and the log print what customers wrote |
//! | [`clock`], [`random`], [`flags`] | time, random bytes, a command line |
// The only indexing is JSON by name, and it is into objects, which then get what they had not.
#![allow(clippy::indexing_slicing)]

pub mod access;
pub mod answer;
pub mod api;
pub mod clock;
pub mod dashboard;
pub mod data;
pub mod demo;
pub mod first_line;
pub mod flags;
pub mod input;
pub mod levers;
pub mod log;
pub mod login;
pub mod monitor;
pub mod peer;
pub mod plan;
pub mod post;
pub mod process;
pub mod program;
pub mod random;
pub mod rows;
pub mod scale;
pub mod scope;
pub mod sender;
pub mod serve;
pub mod shutdown;
pub mod signed;
pub mod store;
pub mod terminal;
pub mod tls;
pub mod trace;
pub mod watch;
