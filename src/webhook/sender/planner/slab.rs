//! Lists of indexes into tables, and the table of the deliveries that are due.

use alloc::vec::Vec;

/// Numbers of deliveries, each at a place that a [`IndexList`] has.
pub(super) struct Slab {
    places: Vec<Place>,
    /// The place that was freed last; its `next` is the one that was freed before it.
    free: u32,
    taken: usize,
}

/// A delivery as bytes, so that a place takes 12.
#[derive(Clone, Copy)]
struct Place {
    delivery: [u8; 8],
    /// The next place in the same list.
    next: u32,
}

impl Default for Slab {
    fn default() -> Self {
        Self { places: Vec::new(), free: NONE, taken: 0 }
    }
}

#[expect(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a list has only places that were made here, and 2^32 of them do not fit into memory"
)]
impl Slab {
    pub(super) fn reserve(&mut self, deliveries: usize) {
        self.places.reserve_exact(deliveries);
    }

    /// Returns how many deliveries are in lists.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    pub(super) fn push(&mut self, delivery: u64, list: &mut IndexList) {
        let delivery = delivery.to_ne_bytes();
        let place = match self.free {
            NONE => {
                self.places.push(Place { delivery, next: NONE });
                u32::try_from(self.places.len() - 1).expect("fewer than 2^32 are in lists")
            }
            place => {
                self.free = self.places[index(place)].next;
                self.places[index(place)].delivery = delivery;
                place
            }
        };
        self.taken += 1;
        if let Some(before) = list.append(place) {
            self.places[index(before)].next = place;
        }
    }

    pub(super) fn pop(&mut self, list: &mut IndexList) -> Option<u64> {
        let place = list.pop(|place| self.places[index(place)].next)?;
        self.taken -= 1;
        let freed = &mut self.places[index(place)];
        freed.next = core::mem::replace(&mut self.free, place);
        Some(u64::from_ne_bytes(freed.delivery))
    }

    /// Keeps those for which `keep` returns true, in their order.
    pub(super) fn retain(&mut self, list: &mut IndexList, mut keep: impl FnMut(u64) -> bool) {
        let mut all = core::mem::take(list);
        while let Some(delivery) = self.pop(&mut all) {
            if keep(delivery) {
                self.push(delivery, list);
            }
        }
    }
}

/// The first and the last number of a queue.
#[derive(Clone, Copy)]
pub(super) struct IndexList {
    pub(super) first: u32,
    last: u32,
}

/// The numbers before and behind one in its queue. [`NONE`] at an end.
#[derive(Clone, Copy, Default)]
pub(super) struct Links {
    before: u32,
    behind: u32,
}

/// No number: a table that has it does not fit into memory.
pub(super) const NONE: u32 = u32::MAX;

#[expect(clippy::indexing_slicing, reason = "a number is in its table before it is in a queue")]
impl IndexList {
    pub(super) fn is_empty(self) -> bool {
        self.first == NONE
    }

    /// Adds a number at the end.
    pub(super) fn push<T>(
        &mut self,
        number: u32,
        table: &mut [T],
        links: impl Fn(&mut T) -> &mut Links,
    ) {
        let before = core::mem::replace(&mut self.last, number);
        *links(&mut table[index(number)]) = Links { before, behind: NONE };
        match before {
            NONE => self.first = number,
            before => links(&mut table[index(before)]).behind = number,
        }
    }

    /// Removes a number, wherever it is in the queue.
    pub(super) fn remove<T>(
        &mut self,
        number: u32,
        table: &mut [T],
        links: impl Fn(&mut T) -> &mut Links,
    ) {
        let Links { before, behind } = *links(&mut table[index(number)]);
        match before {
            NONE => self.first = behind,
            before => links(&mut table[index(before)]).behind = behind,
        }
        match behind {
            NONE => self.last = before,
            behind => links(&mut table[index(behind)]).before = before,
        }
    }

    /// Adds a number at the end of a queue that is only taken from its start, and returns the one
    /// whose successor it is.
    pub(super) fn append(&mut self, number: u32) -> Option<u32> {
        let last = core::mem::replace(&mut self.last, number);
        if self.is_empty() {
            self.first = number;
            return None;
        }
        Some(last)
    }

    /// Takes the first number. `next` is its successor in the table.
    pub(super) fn pop(&mut self, next: impl FnOnce(u32) -> u32) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let first = self.first;
        self.first = if first == self.last { NONE } else { next(first) };
        Some(first)
    }
}

impl Default for IndexList {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

#[expect(clippy::expect_used, reason = "a table that does not fit into memory fails earlier")]
pub(super) fn index(number: u32) -> usize {
    usize::try_from(number).expect("numbers fit into memory")
}
