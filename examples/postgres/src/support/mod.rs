//! What this host shares with the others, and a clock of its own.

pub mod clock;

pub(crate) use host::{flags, log, random, serve, shutdown, tls};
