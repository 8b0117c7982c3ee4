//! HMAC-SHA256 with a stored key schedule, and the comparison of digests.

use core::fmt;

use hmac::KeyInit as _;
use hmac::block_api::HmacCore;
use hmac::digest::block_api::{Buffer, FixedOutputCore as _, UpdateCore as _};
use hmac::digest::{InvalidLength, Output};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq as _};

type Core = HmacCore<Sha256>;

/// A key's schedule: the result of two compressions that every message would otherwise repeat.
///
/// The schedule is the core of `hmac`'s hasher, without the hasher's buffer. Cloning and wiping the
/// buffer for each message would cost as much as half a compression. The core wipes itself when
/// dropped.
#[derive(Clone)]
pub(crate) struct MacKey(Core);

impl MacKey {
    /// Derives the schedule of a key of any length.
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    pub(crate) fn new(key: &[u8]) -> Self {
        let core: Result<Core, InvalidLength> = Core::new_from_slice(key);
        Self(core.expect("HMAC takes keys of any length"))
    }

    /// Computes the digest of these slices, one after another.
    pub(crate) fn digest(&self, message: &[&[u8]]) -> [u8; 32] {
        let mut core = self.0.clone();
        let mut buffer = Buffer::<Core>::default();
        for bytes in message {
            buffer.digest_blocks(bytes, |blocks| core.update_blocks(blocks));
        }
        let mut digest = Output::<Core>::default();
        core.finalize_fixed_core(&mut buffer, &mut digest);
        digest.into()
    }
}

/// Returns whether two digests are equal. The time does not depend on the position of a difference.
///
/// The difference is folded into one word for `subtle`, whose loop over bytes costs as much as a
/// compression.
pub(crate) fn same<const LEN: usize>(ours: &[u8; LEN], theirs: &[u8; LEN]) -> Choice {
    const { assert!(LEN.is_multiple_of(8), "whole words, so that no byte is left out") };
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    let words = ours.as_chunks().0.iter().zip(theirs.as_chunks().0);
    words.fold(0, |found, (ours, theirs)| found | (word(ours) ^ word(theirs))).ct_eq(&0)
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
