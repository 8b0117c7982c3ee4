//! The conformance kit: whether an implementation in any language does what the protocol says.
//!
//! ```no_run
//! use tools::check::{case, service::{self, Api}};
//!
//! let api = Api::new("http://127.0.0.1:8080", None, &std::fs::read_to_string("keys.json").unwrap()).unwrap();
//! let verdicts = case::run(service::CASES, &api, &[], |_| {});
//! assert!(verdicts.iter().all(|verdict| verdict.holds()));
//! ```
//!
//! `examples/tools/check/README.md` is the page for its users. A side has its cases in a table, and a case is a
//! function over the side. A case looks from outside alone.
// Time is that of the other side, which nobody scales here; an index into JSON gives null; numbers are small.
#![allow(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::indexing_slicing)]

pub mod case;
pub mod client;
pub mod command;
pub mod http;
pub mod receiver;
pub mod report;
pub mod sender;
pub mod service;
