//! HMAC-SHA256 with its key schedule kept.
//!
//! The `hmac` crate spends more than half as long again as the compressions of a short message
//! take: it clones two hashers with their buffers for each, and wipes them. A key schedule is two
//! states of 32 bytes; this keeps just those, and hands whole blocks to the compression where they
//! lie. The tests hold it against `hmac` at every length around a block.

use core::fmt;

use hmac::digest::zeroize::Zeroize;
use sha2::block_api::compress256;
use sha2::{Digest, Sha256};

const BLOCK: usize = 64;

/// A key's schedule: the hash's state after the inner block, and after the outer one.
#[derive(Clone)]
pub(crate) struct MacKey {
    inner: [u32; 8],
    outer: [u32; 8],
}

impl MacKey {
    /// Takes a key of any length. One longer than a block is hashed first, as HMAC wants it.
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut block = [0; BLOCK];
        match block.get_mut(..key.len()) {
            Some(start) => start.copy_from_slice(key),
            None => {
                let (start, _) = block.split_at_mut(32);
                start.copy_from_slice(&Sha256::digest(key));
            }
        }
        let mut padded = |pad| {
            let mut state = INITIAL;
            block.iter_mut().for_each(|byte| *byte ^= pad);
            compress256(&mut state, &[block]);
            block.iter_mut().for_each(|byte| *byte ^= pad);
            state
        };
        let key = Self { inner: padded(0x36), outer: padded(0x5c) };
        block.zeroize();
        key
    }

    /// The digest of these bytes, one after another, as big-endian words.
    pub(crate) fn digest(&self, message: &[&[u8]]) -> [u32; 8] {
        let len = message.iter().fold(0_usize, |len, bytes| len.saturating_add(bytes.len()));
        let mut state = self.inner;
        if len <= SHORT {
            short(&mut state, message, len);
        } else {
            long(&mut state, message, len);
        }
        self.finish(state)
    }

    /// The outer hash: one block of the inner digest and its padding.
    fn finish(&self, inner: [u32; 8]) -> [u32; 8] {
        let mut words = [0; 16];
        let (digest, padding) = words.split_at_mut(8);
        digest.copy_from_slice(&inner);
        padding.copy_from_slice(&[0x8000_0000, 0, 0, 0, 0, 0, 0, (64 + 32) * 8]);
        let mut block = [0; BLOCK];
        for (bytes, word) in block.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_be_bytes();
        }
        let mut state = self.outer;
        compress256(&mut state, &[block]);
        state
    }
}

/// The longest message that is put together before it is hashed. Up to a handful of blocks, the
/// copy costs less than entering the compression again.
const SHORT: usize = 5 * BLOCK - 9;

fn short(state: &mut [u32; 8], message: &[&[u8]], len: usize) {
    let mut blocks = [[0; BLOCK]; 5];
    let mut rest = blocks.as_flattened_mut();
    for bytes in message {
        // It is as long as the messages that are sent here, so there is always room.
        let Some((start, after)) = rest.split_at_mut_checked(bytes.len()) else { return };
        start.copy_from_slice(bytes);
        rest = after;
    }
    compress256(state, padded(&mut blocks, len, len));
}

fn long(state: &mut [u32; 8], message: &[&[u8]], len: usize) {
    // What does not fill a block yet; then a second one, if the padding needs it.
    let mut blocks = [[0; BLOCK]; 2];
    let mut held = 0_usize;
    for mut bytes in message.iter().copied() {
        let [block, _] = &mut blocks;
        if held > 0 {
            let room = block.get_mut(held..).unwrap_or_default();
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            let (filled, left) = room.split_at_mut(now.len());
            filled.copy_from_slice(now);
            if !left.is_empty() {
                held = held.saturating_add(now.len());
                continue;
            }
            compress256(state, &[*block]);
            bytes = later;
        }
        let (whole, rest) = bytes.as_chunks();
        if !whole.is_empty() {
            compress256(state, whole);
        }
        let (start, stale) = block.split_at_mut(rest.len());
        start.copy_from_slice(rest);
        stale.fill(0);
        held = rest.len();
    }
    compress256(state, padded(&mut blocks, held, len));
}

/// Pads a message of which the last `held` bytes are here, with zeros after them: a one, and at
/// the end of a block the length in bits, that of the key's block included.
fn padded(blocks: &mut [[u8; BLOCK]], held: usize, len: usize) -> &[[u8; BLOCK]] {
    let used = held.saturating_add(9).div_ceil(BLOCK);
    if let Some(end) = blocks.as_flattened_mut().get_mut(held) {
        *end = 0x80;
    }
    let bits = u64::try_from(len.saturating_add(BLOCK)).unwrap_or(u64::MAX).wrapping_mul(8);
    let blocks = blocks.get_mut(..used).unwrap_or_default();
    if let Some(end) = blocks.as_flattened_mut().last_chunk_mut() {
        *end = bits.to_be_bytes();
    }
    blocks
}

/// SHA-256's state before anything has been hashed.
const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

impl Drop for MacKey {
    fn drop(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::arithmetic_side_effects)]
mod tests {
    use alloc::vec::Vec;

    use hmac::{Hmac, KeyInit, Mac};

    use super::*;

    fn theirs(key: &[u8], message: &[u8]) -> [u32; 8] {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).unwrap();
        mac.update(message);
        let digest: [u8; 32] = mac.finalize().into_bytes().into();
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(digest.as_chunks().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        words
    }

    fn bytes_of(len: usize) -> Vec<u8> {
        (0..len).map(|index| u8::try_from(index % 251).unwrap()).collect()
    }

    #[test]
    fn agrees_with_the_hmac_crate_at_every_length() {
        for key_len in [0, 1, 31, 32, 63, 64, 65, 200] {
            let key = bytes_of(key_len);
            let ours = MacKey::new(&key);
            for len in (0..600).chain([4096, 65_537]) {
                let message = bytes_of(len);
                assert_eq!(ours.digest(&[&message]), theirs(&key, &message), "{key_len}, {len}");
            }
        }
    }

    #[test]
    fn agrees_however_the_message_is_cut() {
        let key = MacKey::new(b"key");
        for len in [200, 311, 312, 450] {
            let message = bytes_of(len);
            let expected = theirs(b"key", &message);
            for one in 0..=len {
                for two in (one..=len).step_by(7) {
                    let (head, tail) = message.split_at(two);
                    let (head, middle) = head.split_at(one);
                    assert_eq!(key.digest(&[head, middle, tail]), expected, "{len} {one} {two}");
                }
            }
        }
    }
}
