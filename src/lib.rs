//! The protocol core of a voice-assistant service's public REST API and webhooks, for both ends.
//!
//! The service answers businesses' phone calls. Its customers read those calls over a REST API and
//! get signed webhooks about them. This crate is what both sides say and understand: it models what
//! travels, proves who sent it, and decides what happens next.
//!
//! **It does no I/O.** No sockets, no clock, no randomness, no logging, no runtime: `now` and random
//! bytes are arguments. There is no trait to implement and no queue to drain. Everything is one of
//! three shapes:
//!
//! - an *exchange*, a request or a receipt in steps, where what must not happen does not compile;
//! - a *durable machine*, a small value the host stores, with transitions
//!   `(state, what happened, now) -> decision`;
//! - a *pure check*, `(input, now) -> Result`.
//!
//! # Where to go
//!
//! | you | begin at | feature |
//! |---|---|---|
//! | receive webhooks | [`webhook::Verifier`], then [`webhook::event`] | none, then `events` |
//! | wonder why a signature does not match | [`webhook::explain`] | `events` |
//! | test your receiver | [`webhook::testing`] | none |
//! | read calls over the API | [`client`], and [`client::sync`] to keep a copy that misses none | `client` |
//! | act on each event once | [`client::inbox`] | `client` |
//! | serve the API | [`service::exchange`] | `service` |
//! | send webhooks | [`webhook::event::NewEvent`], then [`delivery`] | `service` |
//! | write an adapter or a fuzzer | [`api`], [`json`], [`webhook::Signer`], [`service::cursor`] | |
//!
//! The features build on one another and change no type: without any, the crate signs and verifies
//! and brings in the fewest packages; `events` adds the [`model`]s and events; `client` and
//! `service` add their rooms. `std` adds one thing, `Timestamp::from(SystemTime::now())`. All are on
//! by default.
//!
//! # A customer receives
//!
//! ```
//! # #[cfg(feature = "events")] {
//! use call_assistant::Timestamp;
//! use call_assistant::webhook::event::EventData;
//! use call_assistant::webhook::{WebhookResponse, Verifier};
//! use http::Request;
//!
//! fn receive(
//!     verifier: &Verifier,
//!     request: &Request<Vec<u8>>,
//!     store: impl FnOnce(&[u8]), // your database or queue
//!     now: Timestamp,
//! ) -> WebhookResponse {
//!     // The exact bytes, in constant time, without a copy.
//!     let verified = match verifier.verify(request.headers(), request.body(), now) {
//!         Ok(verified) => verified,
//!         Err(refused) => return refused.response(), // and log it: it says precisely why
//!     };
//!     store(verified.bytes()); // first: what is acknowledged does not come again
//!     match verified.event() {
//!         Ok(event) => match event.data {
//!             EventData::CallEnded(call) => println!("{}: {:?}", call.id, call.summary),
//!             _ => {} // also a type, or a form of one, that this version does not know
//!         },
//!         Err(error) => return error.response(), // genuine, but no event
//!     }
//!     WebhookResponse::Accepted
//! }
//! # }
//! ```
//!
//! # The service answers
//!
//! [`service::exchange`] leads a request from its head to its answer: who asks, how often, what they
//! may, what they ask for. Between the steps the host looks up what the next one needs. Its page
//! has a whole host in sixty lines.
//!
//! # What the specification leaves open
//!
//! It is decided once, and documented where it is decided: the order of refusals in
//! [`service::exchange`], the grammar of the signature header in [`webhook`], which calls a walk
//! meets in [`service::page`], from when a retry waits in [`delivery`], how far a watermark may
//! advance in [`client::sync`]. README lists them all.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

pub mod guide;
mod mac;
mod product;
mod secret;
mod time;

#[cfg(feature = "events")]
pub mod id;
#[cfg(feature = "events")]
pub mod json;
#[cfg(feature = "events")]
pub mod model;
#[cfg(any(feature = "client", feature = "service"))]
mod redact;

#[cfg(any(feature = "client", feature = "service"))]
pub mod rest;
pub mod webhook;

pub use product::{Product, ProductError};
#[cfg(feature = "events")]
pub use time::ParseTimestampError;
pub use time::Timestamp;

/// README's examples, compiled.
#[cfg(all(doctest, feature = "client", feature = "service"))]
#[doc = include_str!("../README.md")]
struct Readme;
