//! The protocol core of a voice-assistant service's public REST API and webhooks.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod product;
mod secret;
pub mod time;

#[cfg(feature = "std")]
mod system_time;

#[cfg(feature = "events")]
pub mod id;
#[cfg(feature = "events")]
pub mod open_enum;
#[cfg(feature = "events")]
pub mod rfc3339;

pub use product::{Product, ProductError};
