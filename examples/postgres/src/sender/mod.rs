//! The webhook sender.

use crate::command_line::Sending;
use crate::db::{self, Database};
use crate::key_ring::KeyRing;
use crate::support::shutdown::Shutdown;

/// A sender that runs.
#[derive(Debug)]
pub(crate) struct Running {
    stop: Shutdown,
}

/// Starts a sender.
pub(crate) async fn start(
    database: String,
    _ring: KeyRing,
    _sending: Sending,
    stop: Shutdown,
) -> Result<Running, String> {
    let database = Database::new(&database, 8)?;
    db::check(&database).await.map_err(|error| error.to_string())?;
    Ok(Running { stop })
}

impl Running {
    /// Waits until it has ended.
    pub(crate) async fn ended(self) {
        self.stop.requested().await;
    }
}
