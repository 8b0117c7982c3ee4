//! Virtual time, in milliseconds, and the dice that decide everything.

use call_assistant::Timestamp;

/// So many milliseconds into 2026.
pub fn at(millis: i64) -> Timestamp {
    const YEAR_2026: i64 = 1_767_225_600;
    let nanos = u32::try_from(millis.rem_euclid(1_000)).unwrap() * 1_000_000;
    Timestamp::from_parts(YEAR_2026 + millis.div_euclid(1_000), nanos).unwrap()
}

pub const SECOND: i64 = 1_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;

/// Dice that fall the same for the same seed (SplitMix64).
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// From 0 to `most`, both included.
    pub fn up_to(&mut self, most: i64) -> i64 {
        self.below(most as u64 + 1) as i64
    }

    /// From 0 to `bound`, which is excluded.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Mostly short, sometimes as long as `most`.
    pub fn span(&mut self, most: i64) -> i64 {
        let shift = self.up_to(12);
        self.up_to(most >> shift)
    }

    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        core::array::from_fn(|_| self.bits() as u8)
    }
}
