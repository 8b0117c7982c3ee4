//! What the hosts of the service share: everything but the store.
//!
//! There are two hosts of one service. `examples/service` keeps everything in memory, and
//! `examples/postgres`, a package of its own, in PostgreSQL. Both answer the same public API and the
//! same dashboard, read the same `--data` file and send webhooks in the same way. This folder is
//! all of that, over two traits: [`store::ApiStore`] for the public API and [`store::Store`] for
//! the dashboard. A host declares it at the root of its crate, next to the support folder that it
//! needs:
//!
//! ```text
//! #[path = "../../host/mod.rs"]
//! mod host;
//! #[path = "../../support/mod.rs"]
//! mod support;
//!
//! let api = Api::new(store.clone(), cursor_keys);
//! let dashboard = Dashboard::new(store, Access::ThisMachine, allow_loopback);
//! serve(listener, limits, move |request, peer| api.clone().answer(request, peer), stop).await;
//! ```
//!
//! | file | |
//! |---|---|
//! | `store.rs` | the two traits, and why a store refuses |
//! | `rows.rs` | what goes through them: accounts, endpoints, deliveries, filters |
//! | `api.rs` | the public API |
//! | `dashboard/` | the dashboard: page, routes, JSON |
//! | `data.rs`, `demo.rs`, `input.rs` | accounts to begin with, from a file or the demonstration |
//! | `monitor.rs` | `/metrics`, `/healthz`, `/readyz` |
//! | `post/` | one POST to an endpoint |
//! | `scale.rs` | `--time-scale` and `--timeout-scale` |
//!
//! It needs the library's `std`, `client` and `service`, and these dependencies in the versions of
//! the root package: base64, getrandom, http, http-body-util, hyper, hyper-util, serde, serde_json,
//! sha2, thiserror, tokio, tokio-rustls, url, webpki-roots. A host may leave some of it unused.
//!
//! The tests of `tests/server` that look from outside run against any host:
//! `CALL_ASSISTANT_SERVICE="path/to/program first arguments" cargo test --test server rest`.
#![allow(dead_code, unused_imports)]

pub(crate) mod api;
pub(crate) mod dashboard;
pub(crate) mod data;
pub(crate) mod demo;
pub(crate) mod first_line;
pub(crate) mod input;
pub(crate) mod monitor;
pub(crate) mod plan;
pub(crate) mod post;
pub(crate) mod rows;
pub(crate) mod scale;
pub(crate) mod store;
