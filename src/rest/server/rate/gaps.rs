//! The spans between admissions, packed.

use alloc::collections::VecDeque;

/// Nanoseconds between each admission and the next, oldest first, in four bytes each.
///
/// A gap that four bytes cannot hold is split: as often as need be [`MORE`], then the rest. Only
/// thirteen such parts fit in 60 seconds. All are of one width so that adding a gap is one store,
/// which nothing has to wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gaps(VecDeque<u32>);

/// As much as a part can add without being the last of its gap.
const MORE: u32 = u32::MAX;

/// An allocation of this many parts is left alone.
const FEW: usize = 16;

impl Gaps {
    pub(super) fn push(&mut self, gap: u64) {
        let mut rest = gap;
        let last = loop {
            match u32::try_from(rest) {
                Ok(last) if last < MORE => break last,
                _ => self.push_part(MORE),
            }
            rest = rest.saturating_sub(u64::from(MORE));
        };
        self.push_part(last);
    }

    pub(super) fn pop(&mut self) -> Option<u64> {
        whole(|| self.0.pop_front())
    }

    /// The gaps, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        let mut parts = self.0.iter().copied();
        core::iter::from_fn(move || whole(|| parts.next()))
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
        self.shrink();
    }

    /// Gives back what is more than twice what is held.
    pub(super) fn shrink(&mut self) {
        let (len, capacity) = (self.0.len(), self.0.capacity());
        if capacity > FEW && capacity / 2 > len {
            self.0.shrink_to(len.saturating_add(len / 2).max(FEW / 2));
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.capacity().saturating_mul(size_of::<u32>())
    }

    fn push_part(&mut self, part: u32) {
        if self.0.len() == self.0.capacity() {
            self.grow();
        }
        self.0.push_back(part);
    }

    /// Half as much again: by itself it would double, and hold more than 8 bytes a gap.
    #[cold]
    fn grow(&mut self) {
        self.0.reserve_exact((self.0.len() / 2).max(FEW / 2));
    }
}

/// Puts the parts of the next gap together.
fn whole(mut next: impl FnMut() -> Option<u32>) -> Option<u64> {
    let mut gap = 0_u64;
    loop {
        let part = next()?;
        gap = gap.saturating_add(u64::from(part));
        if part < MORE {
            return Some(gap);
        }
    }
}
