//! Idle connections, kept for the next request to the same host.

use crate::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant::webhook::sender::EndpointUrl;
use tokio::time::Instant;
use url::Position;

use super::connection::Connection;

/// How long an idle connection is kept: less than the five seconds after which many servers close it.
const IDLE: Duration = Duration::from_secs(4);

/// The longest life of a connection. After it, the host's name is resolved again.
const USED: Duration = Duration::from_secs(60);

/// The most idle connections, over all hosts.
const AT_MOST: usize = 512;

/// The idle connections. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    /// Connections by scheme, host and port; the most recently used is the last.
    by_host: HashMap<Box<str>, Vec<(Instant, Connection)>>,
    count: usize,
}

impl Kept {
    /// Takes a connection to this target. Its address is checked again, because the rules may have
    /// changed since it was made.
    pub(super) fn take(&self, target: &EndpointUrl) -> Option<Connection> {
        let now = Instant::now();
        let mut waiting = lock(&self.0);
        let of_host = waiting.by_host.get_mut(host(target))?;
        let before = of_host.len();
        let found = std::iter::from_fn(|| of_host.pop()).find(|(since, connection)| {
            !connection.is_closed()
                && now.duration_since(*since) < IDLE
                && target.check(connection.address).is_ok()
        });
        let taken = before.saturating_sub(of_host.len());
        waiting.count = waiting.count.saturating_sub(taken);
        found.map(|(_, connection)| connection)
    }

    /// Keeps a connection for the next request.
    pub(super) fn put(&self, target: &EndpointUrl, connection: Connection) {
        let now = Instant::now();
        if now.duration_since(connection.opened) > USED {
            return;
        }
        let mut waiting = lock(&self.0);
        if waiting.count < AT_MOST {
            waiting.count = waiting.count.saturating_add(1);
            let host = host(target);
            match waiting.by_host.get_mut(host) {
                Some(of_host) => of_host.push((now, connection)),
                None => {
                    waiting.by_host.insert(host.into(), vec![(now, connection)]);
                }
            }
        }
    }

    /// Closes connections that were idle for too long, every second, until the last sender is dropped.
    pub(super) async fn close_idle(self) {
        while Arc::strong_count(&self.0) > 1 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = Instant::now();
            let mut waiting = lock(&self.0);
            waiting.by_host.retain(|_, of_host| {
                of_host.retain(|(since, connection)| {
                    !connection.is_closed() && now.duration_since(*since) < IDLE
                });
                !of_host.is_empty()
            });
            waiting.count = waiting.by_host.values().map(Vec::len).sum();
        }
    }
}

/// Returns the scheme, the host and the port.
fn host(target: &EndpointUrl) -> &str {
    &target.url()[..Position::AfterPort]
}
