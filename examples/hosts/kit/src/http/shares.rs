//! The share of a process that each account's owner has: whatever one asks for at the same time, operators and other
//! owners are answered meanwhile.

use crate::lock;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, Weak};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// How many requests of owners are answered at the same time: 4. An operator's waits for none of them.
pub const OWNERS: usize = 4;

/// The most requests of one owner that wait or are answered: 16. One at a time is answered, for half of the time.
pub const MOST: usize = 16;

/// The requests of owners that are under way. Clones share it.
#[derive(Clone, Debug)]
pub struct Shares<K> {
    all: Arc<Semaphore>,
    each: Arc<Mutex<HashMap<K, Weak<Semaphore>>>>,
}

/// The turn of a request among those of its owner, and among those of all. The owner's next turn begins after a pause that
/// is as long as this one: no owner takes more than half of a share.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Share {
    own: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
    began: Instant,
}

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(OWNERS)), each: Arc::default() }
    }
}

impl<K: Eq + Hash> Shares<K> {
    /// Waits until a request of an owner may be answered. `None`: too many others of this owner wait.
    pub async fn enter(&self, owner: K) -> Option<Share> {
        let own = {
            let mut each = lock(&self.each);
            each.retain(|_, own| own.strong_count() > 0);
            let known = each.get(&owner).and_then(Weak::upgrade);
            let own = known.unwrap_or_else(|| Arc::new(Semaphore::new(1)));
            each.insert(owner, Arc::downgrade(&own));
            own
        };
        // Each request holds one, until it is answered.
        if Arc::strong_count(&own) > MOST {
            return None;
        }
        // Nobody closes them.
        let own = own.acquire_owned().await.ok();
        let all = Arc::clone(&self.all).acquire_owned().await.ok();
        Some(Share { own, _all: all, began: Instant::now() })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let (own, took) = (self.own.take(), self.began.elapsed());
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                sleep(took).await;
                drop(own);
            });
        }
    }
}
