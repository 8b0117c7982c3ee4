//! A queue of numbers that are linked through a table of the caller's.

/// The first and the last number. Each number's successor is in the table.
#[derive(Clone, Copy)]
pub(super) struct Line {
    first: u32,
    last: u32,
}

/// No number: a table that has it does not fit into memory.
pub(super) const NONE: u32 = u32::MAX;

impl Line {
    pub(super) fn is_empty(self) -> bool {
        self.first == NONE
    }

    /// Adds a number, and returns the one whose successor it is.
    pub(super) fn push(&mut self, number: u32) -> Option<u32> {
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
