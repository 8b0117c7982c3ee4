//! Counts of a minute, by what they are of.

use crate::lock;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);

/// The most keys that are remembered: 1,024. One more replaces the oldest.
const MOST: usize = 1024;

/// How often something was done since the minute of its key began. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Counts<K>(Arc<Mutex<HashMap<K, (Instant, u32)>>>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Clone + Eq + Hash> Counts<K> {
    /// Counts one more.
    ///
    /// # Errors
    /// There were so many in this minute: the seconds to wait.
    pub(crate) fn add(&self, key: K, most: u32) -> Result<(), u64> {
        let now = Instant::now();
        let mut counts = lock(&self.0);
        counts.retain(|_, (since, _)| now.duration_since(*since) < MINUTE);
        if counts.len() >= MOST && !counts.contains_key(&key) {
            let oldest = counts.iter().min_by_key(|(_, (since, _))| *since);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                counts.remove(&oldest);
            }
        }
        let (since, count) = counts.entry(key).or_insert((now, 0));
        if *count >= most {
            let left = MINUTE.saturating_sub(now.duration_since(*since));
            return Err(left.as_secs().saturating_add(1));
        }
        *count = count.saturating_add(1);
        Ok(())
    }
}
