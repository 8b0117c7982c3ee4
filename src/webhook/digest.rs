//! What a secret makes of a message, in hex both ways, and the comparison.

use subtle::Choice;

use super::secret::SigningSecret;
use super::verify_error::DigestReason;
use crate::mac::{self, MacKey};

/// A secret's key schedule: two compressions that every message would otherwise repeat.
#[derive(Clone, Debug)]
pub(super) struct Key(MacKey);

impl Key {
    pub(super) fn new(secret: &SigningSecret) -> Self {
        Self::from_bytes(secret.as_bytes())
    }

    pub(super) fn from_bytes(key: &[u8]) -> Self {
        Self(MacKey::new(key))
    }

    /// The digest over the timestamp as written, a period, and the body.
    pub(super) fn digest(&self, timestamp: &[u8], body: &[u8]) -> Digest {
        self.mac(&[timestamp, b".", body])
    }

    /// The digest over these bytes, one after another.
    pub(super) fn mac(&self, message: &[&[u8]]) -> Digest {
        Digest(self.0.digest(message))
    }
}

/// A digest, ours or one received.
///
/// Aligned, it is moved in whole words; otherwise it follows a one-byte tag, and reading a header
/// takes half as long again.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub(super) struct Digest([u8; 32]);

impl Digest {
    /// The length of a digest in hex.
    pub(super) const HEX_LEN: usize = 64;

    /// Whether two digests are the same, in constant time.
    pub(super) fn ct_eq(&self, other: &Self) -> Choice {
        mac::same(&self.0, &other.0)
    }

    /// Writes the digest as lowercase hex.
    pub(super) fn write_hex(&self, digits: &mut [u8; Self::HEX_LEN]) {
        write_hex(&self.0, digits);
    }

    /// Reads 64 hex digits, and tells whether one of them was uppercase.
    ///
    /// Without a branch or a table, so that the compiler takes sixteen digits at a time. Digests
    /// received are no secret.
    pub(super) fn decode(digits: &[u8; Self::HEX_LEN]) -> Option<(Self, Case)> {
        let mut not_hex = false;
        let mut uppercase = false;
        let nibbles = digits.map(|digit| {
            let number = digit.wrapping_sub(b'0');
            let letter = (digit | 0x20).wrapping_sub(b'a');
            not_hex |= (number > 9) & (letter > 5);
            uppercase |= digit.is_ascii_uppercase();
            if number > 9 { letter.wrapping_add(10) } else { number }
        });
        if not_hex {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, &[high, low]) in bytes.iter_mut().zip(nibbles.as_chunks().0) {
            *byte = (high << 4).wrapping_add(low);
        }
        Some((Self(bytes), if uppercase { Case::Upper } else { Case::Lower }))
    }

    /// What keeps a text from being one.
    pub(super) fn fault(text: &[u8]) -> DigestReason {
        match text.iter().position(|digit| !digit.is_ascii_hexdigit()) {
            Some(at) if text.len() == Self::HEX_LEN => DigestReason::Character { at },
            _ => DigestReason::Length { len: text.len() },
        }
    }
}

/// How a received digest is spelt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Lower,
    Upper,
}

/// Writes bytes as lowercase hex into twice as many.
pub(super) fn write_hex(bytes: &[u8], digits: &mut [u8]) {
    for (byte, pair) in bytes.iter().zip(digits.as_chunks_mut::<2>().0) {
        *pair = [byte >> 4, byte & 0x0f].map(|nibble| {
            let letter = if nibble > 9 { b'a' - b'0' - 10 } else { 0 };
            nibble.wrapping_add(b'0').wrapping_add(letter)
        });
    }
}
