//! Instants ([`Timestamp`]), RFC 3339, and the dates of HTTP headers.

#[cfg(feature = "client")]
pub(crate) mod http_date;
#[cfg(feature = "events")]
mod parse;
mod timestamp;
mod write;

#[cfg(feature = "events")]
pub use parse::ParseTimestampError;
#[cfg(feature = "events")]
pub(crate) use parse::parse;
pub use timestamp::Timestamp;
#[cfg(feature = "events")]
pub(crate) use write::offset;
