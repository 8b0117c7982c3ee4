//! HTTP: connections and their ends, the public API, monitoring, and what is answered.

pub mod answer;
pub mod api;
pub(crate) mod gzip;
pub mod monitor;
pub mod peer;
pub mod serve;
pub mod shares;
