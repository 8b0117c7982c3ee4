//! What this host shares with the other examples, and a clock of its own.
#![allow(dead_code)]

pub mod clock;
#[path = "../../../support/flags.rs"]
pub(crate) mod flags;
#[path = "../../../support/log.rs"]
pub(crate) mod log;
#[path = "../../../support/peer.rs"]
pub(crate) mod peer;
#[path = "../../../support/random.rs"]
pub(crate) mod random;
#[path = "../../../support/serve.rs"]
pub(crate) mod serve;
#[path = "../../../support/shutdown.rs"]
pub(crate) mod shutdown;
#[path = "../../../support/tls.rs"]
pub(crate) mod tls;
