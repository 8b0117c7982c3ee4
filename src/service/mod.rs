//! What the service embeds: the cursors, pages and rate limits of its REST API.
//!
//! Everything here is a plain value or a check of one. The host's store, its clock and its random
//! numbers stay with the host.

pub mod cursor;
pub mod exchange;
pub mod grant;
pub mod page;
pub mod rate;
pub mod refusal;
pub mod standing;
