//! The words everything else speaks: times, ids, names, errors, credentials, models, JSON.

#![allow(clippy::indexing_slicing, clippy::panic, clippy::string_slice, clippy::unwrap_used)]

mod time;
