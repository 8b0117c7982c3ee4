//! Parking of what is pending of endpoints: each is gone through once at a time, however many of its deliveries ask
//! for it. So one that has many leaves connections for what is sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

use crate::db::DbError;
use host::log;

const AFTER_ERROR: Duration = Duration::from_secs(1);

/// The endpoints that are gone through: by their numbers, whether somebody has asked since that began. Clones share
/// them.
#[derive(Clone, Debug, Default)]
pub(super) struct Parking(Arc<Mutex<HashMap<i32, bool>>>);

impl Parking {
    /// Asks for what is pending of an endpoint to be parked. Whoever asks first gets a future that does so, with any
    /// number of tries, and once more if somebody asks meanwhile: what that one has seen may be behind it.
    pub(super) fn of<P, T>(
        &self,
        endpoint: i32,
        park: P,
    ) -> Option<impl Future<Output = ()> + use<P, T>>
    where
        P: Fn() -> T,
        T: Future<Output = Result<(), DbError>>,
    {
        if let Some(is_asked_again) = self.under_way().get_mut(&endpoint) {
            *is_asked_again = true;
            return None;
        }
        self.under_way().insert(endpoint, false);
        let own = self.clone();
        Some(async move {
            loop {
                own.under_way().insert(endpoint, false);
                let parked = park().await;
                log::tried("parking", &parked);
                match parked {
                    Ok(()) if own.is_over(endpoint) => return,
                    Ok(()) => {}
                    Err(_) => sleep(AFTER_ERROR).await,
                }
            }
        })
    }

    /// Forgets an endpoint, unless somebody has asked for it again.
    fn is_over(&self, endpoint: i32) -> bool {
        let mut under_way = self.under_way();
        let is_over = under_way.get(&endpoint) != Some(&true);
        if is_over {
            under_way.remove(&endpoint);
        }
        is_over
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<i32, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]

    use tokio::time::Instant;

    use super::*;

    const WORK: Duration = Duration::from_millis(100);

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_is_gone_through_once_at_a_time_and_once_more_for_who_asks_meanwhile() {
        let (parking, walks) = (Parking::default(), Arc::new(Mutex::new(Vec::new())));
        let ask = |endpoint: i32| {
            let walks = Arc::clone(&walks);
            let park = move || {
                let mut walks = walks.lock().unwrap();
                walks.push(endpoint);
                // The first time, the database refuses number 3.
                let is_refused = endpoint == 3 && walks.iter().filter(|of| **of == 3).count() == 1;
                async move {
                    sleep(WORK).await;
                    if is_refused { Err(DbError::TimedOut) } else { Ok(()) }
                }
            };
            parking.of(endpoint, park).map(tokio::spawn)
        };
        let began = Instant::now();
        let mut asked = vec![ask(1).unwrap()];
        assert!((0..100).all(|_| ask(1).is_none()), "it has not begun");
        sleep(WORK / 2).await;
        assert!((0..100).all(|_| ask(1).is_none()), "it is under way");
        asked.extend([2, 3, 4].map(|endpoint| ask(endpoint).unwrap()));
        for task in asked {
            task.await.unwrap();
        }
        let mut walks = walks.lock().unwrap().clone();
        walks.sort_unstable();
        assert_eq!(walks, [1, 1, 2, 3, 3, 4]);
        assert!(began.elapsed() >= AFTER_ERROR, "{:?}", began.elapsed());
        // It is over: who asks then is the first.
        assert!(ask(1).is_some());
    }
}
