//! The deliveries that stand in lines.

use alloc::vec::Vec;

use super::line::{Line, NONE};

/// Numbers of deliveries, each at a place that a [`Line`] has.
pub(super) struct Slots {
    places: Vec<Place>,
    /// The last place without a delivery; the next one is the one before it.
    free: u32,
    taken: usize,
}

/// A delivery, in two halves so that a place takes 12 bytes.
#[derive(Clone, Copy)]
struct Place {
    halves: [u32; 2],
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

    /// How many deliveries are in lines.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    pub(super) fn push(&mut self, delivery: u64, line: &mut Line) {
        let [a, b, c, d, e, f, g, h] = delivery.to_ne_bytes();
        let halves = [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])];
        let place = match self.free {
            NONE => {
                self.places.push(Place { halves, next: NONE });
                u32::try_from(self.places.len() - 1).expect("fewer than 2^32 are in lines")
            }
            place => {
                self.free = self.places[index(place)].next;
                self.places[index(place)].halves = halves;
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
        let [[a, b, c, d], [e, f, g, h]] = freed.halves.map(u32::to_ne_bytes);
        Some(u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
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
