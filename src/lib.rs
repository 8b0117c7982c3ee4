//! The protocol core of a voice-assistant service's public REST API and signed webhooks.
//!
//! The service answers phone calls for businesses. Its customers read the calls over a REST API and
//! receive signed webhooks about the calls. The service and its customers each embed one half of
//! this crate. Both halves use the same types.
//!
//! ```
//! # #[cfg(feature = "client")] {
//! use std::io;
//!
//! use call_assistant::Timestamp;
//! use call_assistant::webhook::event::{Event, EventData};
//! use call_assistant::webhook::receiver::EventKey;
//! use call_assistant::webhook::{Verifier, WebhookResponse};
//! use http::Request;
//!
//! fn receive(
//!     verifier: &Verifier,
//!     request: &Request<Vec<u8>>,
//!     store: impl FnOnce(&EventKey, &[u8]) -> io::Result<()>, // your database or queue
//!     now: Timestamp, // Timestamp::from(SystemTime::now())
//! ) -> WebhookResponse {
//!     match verifier.receive(request.headers(), request.body(), now) {
//!         Ok(receipt) => match store(receipt.key(), request.body()) {
//!             Ok(()) => receipt.stored(), // 204: an acknowledged event is not sent again
//!             Err(_) => WebhookResponse::Unavailable, // 503: it is sent again
//!         },
//!         Err(error) => error.response(), // 400: log the error, it says precisely why
//!     }
//! }
//!
//! fn handle(stored: &[u8]) {
//!     match Event::from_bytes_verified_earlier(stored).map(|event| event.data) {
//!         Ok(EventData::CallEnded(call)) => println!("{}: {:?}", call.id, call.summary),
//!         Ok(EventData::Unreadable { error, .. }) => eprintln!("keep the bytes: {error}"),
//!         Ok(_) => {} // another type, or one of a later version
//!         Err(error) => eprintln!("signed, but not an event: {error}"),
//!     }
//! }
//! # }
//! ```
//!
//! **The crate does no I/O.** It has no sockets, no clock, no randomness, no logging and no
//! runtime. Its functions take the current time and random bytes as arguments. A program that uses
//! this crate (a *host*) implements no trait.
//!
//! # Where to begin
//!
//! | you | begin at | feature |
//! |---|---|---|
//! | receive webhooks | [`webhook::receiver`] | `client` |
//! | verify webhooks, and nothing else | [`webhook::Verifier`] | none |
//! | debug a signature mismatch | [`webhook::explain`] | `explain` |
//! | test your receiver | [`webhook::testing`] | none |
//! | read calls over the API | [`rest::client`] | `client` |
//! | keep a copy of all calls | [`rest::client::Client::sync`] | `client` |
//! | serve the API | [`rest::server`] | `service` |
//! | send webhooks | [`webhook::event::NewEvent`], then [`webhook::sender`] | `service` |
//! | rotate signing secrets, API keys, cursor keys | [`guide::security`](guide::security#rotations) | none |
//! | monitor a service or a receiver | [`metrics`] | `client` or `service` |
//! | write in a language other than Rust | [`guide::languages`] | none |
//!
//! The pages on [receiving](guide::receiving#axum) and [reading](guide::reading#http-clients) have
//! programs that you can copy, and the [glossary](guide::glossary) defines the terms.
//!
//! [`guide`] has a page for each task: receiving, reading, serving, sending, storing, testing.
//! [`guide::protocol`] has every rule and every limit of the protocol.
//!
//! # Four shapes
//!
//! - An *exchange* is one request, handled in steps. Each step consumes the result of the previous
//!   step. Therefore code that skips a step does not compile. Example: [`rest::server::Received`].
//! - A *durable machine* is a small value that the host stores. Its methods take the time and an
//!   outcome, such as a response, and return a decision. Example: [`webhook::sender::Delivery`].
//! - A *pure check* returns a `Result` and keeps no state. Example: [`webhook::Verifier`].
//! - A *flow* is a value that controls a loop. The host asks the flow for the next step. Example:
//!   [`rest::client::Flow`].
//!
//! # Features
//!
//! `client` and `std` are on by default. Add the service's side with
//! `cargo add call-assistant --features service`.
//!
//! | feature | adds |
//! |---|---|
//! | (none) | signing and verifying, with the fewest dependencies |
//! | `events` | [`model`], [`json`], [`id`] and [`webhook::event`] |
//! | `client` | [`rest::client`] and [`webhook::receiver`]; implies `events` |
//! | `service` | [`rest::server`] and [`webhook::sender`]; implies `events` |
//! | `explain` | [`webhook::explain`]; implies `events` |
//! | `std` | `Timestamp::from(SystemTime::now())` |
//!
//! Features only add items. A feature changes no type or function. The crate is `no_std`, but needs
//! a target with `std`, because the crate `http` needs `std`.
//!
//! [`json`] describes which public enums can get more variants, and how unknown fields and values
//! are read.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod product;
mod secret;
mod text;
mod time;

#[cfg(feature = "events")]
pub mod id;
#[cfg(feature = "events")]
pub mod json;
#[cfg(any(feature = "client", feature = "service"))]
pub mod metrics;
#[cfg(feature = "events")]
pub mod model;

#[cfg(any(feature = "client", feature = "service"))]
pub mod rest;
pub mod webhook;

pub mod guide;

pub use product::Product;
pub use text::{TextError, TextReason};
#[cfg(feature = "events")]
pub use time::ParseTimestampError;
pub use time::Timestamp;

/// README's examples, compiled.
#[cfg(all(doctest, feature = "client", feature = "service"))]
#[doc = include_str!("../README.md")]
struct Readme;
