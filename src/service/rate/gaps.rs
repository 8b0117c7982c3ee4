//! The spans between admissions, packed.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Nanoseconds between each admission and the next, oldest first, in LEB128.
///
/// The gaps of 60 seconds cannot take more than 4 bytes each and 220: only 223 gaps of 2^28 fit
/// in. Those just added wait beside the queue, so that most checks touch no other memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    queue: VecDeque<u8>,
    recent: [u8; Self::RECENT],
    recent_len: u8,
}

/// The longest gap, just below 60 seconds, has 36 bits.
const MAX_LEN: usize = 6;

impl Gaps {
    /// Fills the bytes that alignment leaves.
    const RECENT: usize = 23;

    /// Takes bytes of [`bytes`](Self::bytes), already checked by [`read`].
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        let mut gaps = Self { queue: VecDeque::from(bytes), ..Self::default() };
        gaps.shrink();
        gaps
    }

    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        self.queue.iter().chain(self.recent()).copied()
    }

    /// The gaps themselves, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        let mut bytes = self.bytes();
        core::iter::from_fn(move || read(&mut bytes)).map(|(gap, _)| gap)
    }

    pub(super) fn push(&mut self, gap: u64) {
        if self.recent().len() > Self::RECENT.saturating_sub(MAX_LEN) {
            self.queue_recent();
        }
        let mut rest = gap;
        while rest >= 0x80 {
            self.push_byte(low_bits(rest) | 0x80);
            rest >>= 7;
        }
        self.push_byte(low_bits(rest));
    }

    pub(super) fn pop(&mut self) -> Option<u64> {
        if self.queue.is_empty() {
            self.queue_recent();
        }
        let (gap, len) = read(self.queue.iter().copied())?;
        self.queue.drain(..len);
        self.shrink();
        Some(gap)
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.recent_len = 0;
        self.shrink();
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.queue.capacity()
    }

    fn recent(&self) -> &[u8] {
        self.recent.get(..usize::from(self.recent_len)).unwrap_or_default()
    }

    fn push_byte(&mut self, byte: u8) {
        if let Some(free) = self.recent.get_mut(usize::from(self.recent_len)) {
            *free = byte;
            self.recent_len = self.recent_len.saturating_add(1);
        }
    }

    fn queue_recent(&mut self) {
        // Half as much again: by itself it would double, and hold more than 8 bytes a gap.
        let len = self.queue.len();
        if self.queue.capacity().saturating_sub(len) < self.recent().len() {
            self.queue.reserve_exact((len / 2).max(Self::RECENT));
        }
        let recent = self.recent;
        self.queue.extend(recent.iter().take(usize::from(self.recent_len)));
        self.recent_len = 0;
    }

    fn shrink(&mut self) {
        let (len, capacity) = (self.queue.len(), self.queue.capacity());
        if capacity > 64 && capacity / 2 > len {
            self.queue.shrink_to(len.saturating_add(len / 2).max(Self::RECENT));
        }
    }
}

/// Where the bytes lie does not matter.
impl PartialEq for Gaps {
    fn eq(&self, other: &Self) -> bool {
        self.bytes().eq(other.bytes())
    }
}

impl Eq for Gaps {}

/// One gap and its length in bytes, unless it is cut off or too long.
pub(super) fn read(bytes: impl IntoIterator<Item = u8>) -> Option<(u64, usize)> {
    let mut gap = 0;
    let shifts = (0..).step_by(7);
    for ((len, shift), byte) in (1..=MAX_LEN).zip(shifts).zip(bytes) {
        gap |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((gap, len));
        }
    }
    None
}

fn low_bits(number: u64) -> u8 {
    let [low, ..] = number.to_le_bytes();
    low & 0x7f
}
