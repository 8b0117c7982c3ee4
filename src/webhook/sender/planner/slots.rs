//! The deliveries that stand in lines.

use alloc::vec::Vec;

use super::line::{Line, NONE};

/// Numbers of deliveries, each at a place that a [`Line`] has.
pub(super) struct Slots {
    places: Vec<Place>,
    /// The place that was freed last; its `next` is the one that was freed before it.
    free: u32,
    taken: usize,
}

/// A delivery as bytes, so that a place takes 12.
#[derive(Clone, Copy)]
struct Place {
    delivery: [u8; 8],
    /// The next place in the same line.
    next: u32,
}

impl Default for Slots {
    fn default() -> Self {
        Self { places: Vec::new(), free: NONE, taken: 0 }
    }
}

#[expect(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a line has only places that were made here, and 2^32 of them do not fit into memory"
)]
impl Slots {
    pub(super) fn reserve(&mut self, deliveries: usize) {
        self.places.reserve_exact(deliveries);
    }

    /// Returns how many deliveries are in lines.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    pub(super) fn push(&mut self, delivery: u64, line: &mut Line) {
        let delivery = delivery.to_ne_bytes();
        let place = match self.free {
            NONE => {
                self.places.push(Place { delivery, next: NONE });
                u32::try_from(self.places.len() - 1).expect("fewer than 2^32 are in lines")
            }
            place => {
                self.free = self.places[index(place)].next;
                self.places[index(place)].delivery = delivery;
                place
            }
        };
        self.taken += 1;
        if let Some(before) = line.append(place) {
            self.places[index(before)].next = place;
        }
    }

    pub(super) fn pop(&mut self, line: &mut Line) -> Option<u64> {
        let place = line.pop(|place| self.places[index(place)].next)?;
        self.taken -= 1;
        let freed = &mut self.places[index(place)];
        freed.next = core::mem::replace(&mut self.free, place);
        Some(u64::from_ne_bytes(freed.delivery))
    }

    /// Keeps those for which `keep` returns true, in their order.
    pub(super) fn retain(&mut self, line: &mut Line, mut keep: impl FnMut(u64) -> bool) {
        let mut all = core::mem::take(line);
        while let Some(delivery) = self.pop(&mut all) {
            if keep(delivery) {
                self.push(delivery, line);
            }
        }
    }
}

#[expect(clippy::expect_used, reason = "a table that does not fit into memory fails earlier")]
pub(super) fn index(number: u32) -> usize {
    usize::try_from(number).expect("numbers fit into memory")
}
