//! Queues of numbers that are linked through tables.

use super::slots::index;

/// The first and the last number of a queue.
#[derive(Clone, Copy)]
pub(super) struct Line {
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
impl Line {
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

impl Default for Line {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}
