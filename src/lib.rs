//! The protocol core of a voice-assistant service's public REST API and webhooks.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod mac;
mod product;
mod secret;
pub mod time;
pub mod webhook;

#[cfg(feature = "std")]
mod system_time;

#[cfg(feature = "events")]
pub mod error;
#[cfg(feature = "events")]
pub mod id;
#[cfg(feature = "events")]
pub mod json;
#[cfg(feature = "events")]
pub mod model;
#[cfg(feature = "events")]
pub mod open_enum;
#[cfg(feature = "events")]
pub mod rfc3339;

#[cfg(any(feature = "client", feature = "service"))]
pub mod api;
#[cfg(any(feature = "client", feature = "service"))]
pub mod credential;
#[cfg(any(feature = "client", feature = "service"))]
pub mod listing;
#[cfg(any(feature = "client", feature = "service"))]
pub mod quota;

#[cfg(feature = "service")]
pub mod delivery;
#[cfg(feature = "service")]
pub mod plan;
#[cfg(feature = "service")]
pub mod service;

pub use product::{Product, ProductError};
