//! What the hosts of the service share: everything but the store.
//!
//! ```
//! # async fn run<S: host::store::ApiStore + host::store::Store>(
//! #     store: S, cursor_keys: call_assistant::rest::server::CursorKeys,
//! #     listener: tokio::net::TcpListener, limits: host::http::serve::Limits, stop: host::program::shutdown::Shutdown,
//! # ) {
//! use host::http::{api::Api, serve::serve};
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
//! [`rows::Rows`] for what is sent.
//!
//! | | |
//! |---|---|
//! | [`store`] | two of the traits, and why a store refuses; accounts, endpoints, deliveries, filters |
//! | [`rows`] | the third: what a sender asks of a store |
//! | [`store::scope`] | what a login may see and change |
//! | [`http`] | connections and their ends; the public API; `/metrics`, `/healthz`, `/readyz` |
//! | [`dashboard`] | the dashboard: page, routes, JSON |
//! | [`auth`] | who may use the dashboard; cookies and links |
//! | [`post`] | one POST to an endpoint; its request, shown again |
//! | [`sender`] | the sender of webhooks, over any store of rows; [`sender::leases`] of its shards, where several share them |
//! | [`data`], [`input`] | accounts to begin with, from a file or the demonstration; how JSON is read |
//! | [`program`] | how a program begins and ends: first lines, tasks, shutdown |
//! | [`flags`], [`options`] | command lines of all programs; what those of both hosts have |
//! | [`log`], [`terminal`] | the log; how it and commands print what customers wrote |
//! | [`trace`] | the trace of a caller, for lines of the log |
//! | [`clock`], [`random`], [`tls`] | time, random bytes, certificates |
// The only indexing is JSON by name, and it is into objects, which then get what they had not.
#![allow(clippy::indexing_slicing)]

pub mod auth;
pub mod clock;
pub mod dashboard;
pub mod data;
pub mod flags;
pub mod http;
pub mod input;
pub mod log;
pub mod options;
pub mod post;
pub mod program;
pub mod random;
pub mod rows;
pub mod sender;
pub mod store;
pub mod terminal;
pub mod tls;
pub mod trace;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a panic under it: nothing panics half way through a change of what it holds.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
