//! The webhook sender.

use std::path::PathBuf;

use crate::db::{self, Database};
use crate::host::scale::Scale;
use crate::key_ring::KeyRing;
use crate::support::shutdown::Shutdown;

/// What the command line says.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) database: String,
    pub(crate) ring: KeyRing,
    pub(crate) allow_loopback: bool,
    pub(crate) trust_ca: Option<PathBuf>,
    pub(crate) scale: Scale,
}

/// A sender that runs.
#[derive(Debug)]
pub(crate) struct Running {
    stop: Shutdown,
}

/// Starts a sender.
pub(crate) async fn start(options: Options, stop: Shutdown) -> Result<Running, String> {
    let database = Database::new(&options.database, 8)?;
    db::check(&database).await.map_err(|error| error.to_string())?;
    Ok(Running { stop })
}

impl Running {
    /// Waits until it has ended.
    pub(crate) async fn ended(self) {
        self.stop.requested().await;
    }
}
