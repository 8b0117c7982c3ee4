//! Locks on rows: who holds one, who waits for it and in which order, and who waits in a circle.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use super::tables::Place;

/// The locks of all transactions, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Locks {
    held: BTreeMap<Place, Held>,
    /// What each transaction waits for.
    waits: BTreeMap<u64, Place>,
}

#[derive(Debug)]
struct Held {
    by: u64,
    queue: VecDeque<(u64, Waker)>,
}

/// What comes of asking for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Held,
    Waits,
    /// It would wait for itself.
    Deadlock,
}

impl Locks {
    /// Asks for a lock, first come, first served.
    pub(super) fn lock(&mut self, tx: u64, place: Place, waker: &Waker) -> Asked {
        if self.waits.contains_key(&tx) {
            // The one that waits is polled again.
            let held = self.held.get_mut(&place).unwrap();
            let own = held.queue.iter_mut().find(|(of, _)| *of == tx).unwrap();
            own.1 = waker.clone();
            return Asked::Waits;
        }
        let Some(held) = self.held.get(&place) else {
            self.held.insert(place, Held { by: tx, queue: VecDeque::new() });
            return Asked::Held;
        };
        if held.by == tx {
            return Asked::Held;
        }
        let mut holder = held.by;
        while let Some(wanted) = self.waits.get(&holder) {
            holder = self.held[wanted].by;
            if holder == tx {
                return Asked::Deadlock;
            }
        }
        self.waits.insert(tx, place);
        let held = self.held.get_mut(&place).unwrap();
        held.queue.push_back((tx, waker.clone()));
        Asked::Waits
    }

    /// Tells whether another transaction holds the lock.
    pub(super) fn is_anothers(&self, tx: u64, place: Place) -> bool {
        self.held.get(&place).is_some_and(|held| held.by != tx)
    }

    /// Returns who waits for what, and for whom.
    pub(super) fn waits(&self) -> Vec<(u64, Place, u64)> {
        self.waits.iter().map(|(tx, place)| (*tx, *place, self.held[place].by)).collect()
    }

    /// Ends a lock on a row that is gone.
    pub(super) fn unlock(&mut self, place: Place) {
        let Some(mut held) = self.held.remove(&place) else { return };
        if let Some((next, waker)) = held.queue.pop_front() {
            self.waits.remove(&next);
            held.by = next;
            self.held.insert(place, held);
            waker.wake();
        }
    }

    /// Ends all locks of a transaction, and its wait.
    pub(super) fn release(&mut self, tx: u64) {
        if let Some(place) = self.waits.remove(&tx)
            && let Some(held) = self.held.get_mut(&place)
        {
            held.queue.retain(|(of, _)| *of != tx);
        }
        let own = self.held.iter().filter(|(_, held)| held.by == tx).map(|(place, _)| *place);
        let own: Vec<Place> = own.collect();
        own.into_iter().for_each(|place| self.unlock(place));
    }
}
