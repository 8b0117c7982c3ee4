//! What the examples share: the world around a library that does no I/O.
//!
//! Each example is a small host, and a host brings what the library leaves out: a clock, random
//! bytes, sockets, a log, an end. An example that does not need one of these leaves it unused.
#![allow(dead_code)]

pub(crate) mod capture;
pub(crate) mod clock;
pub(crate) mod files;
pub(crate) mod flags;
pub(crate) mod log;
pub(crate) mod peer;
pub(crate) mod random;
pub(crate) mod secrets;
pub(crate) mod serve;
pub(crate) mod shutdown;
pub(crate) mod tls;
