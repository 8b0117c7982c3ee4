//! HMAC-SHA256 with its key schedule kept, hex both ways, and the comparison.

use core::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use super::secret::SigningSecret;
use super::verify_error::DigestFault;

/// A secret's key schedule: two of the compressions that every message would otherwise repeat.
#[derive(Clone)]
pub(super) struct Key(Hmac<Sha256>);

impl Key {
    pub(super) fn new(secret: &SigningSecret) -> Self {
        Self::from_bytes(secret.as_bytes())
    }

    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    pub(super) fn from_bytes(key: &[u8]) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC takes keys of any length"))
    }

    /// The digest over the timestamp as written, a period, and the body.
    pub(super) fn digest(&self, timestamp: &[u8], body: &[u8]) -> Digest {
        self.mac(&[timestamp, b".", body])
    }

    /// The digest over these bytes, one after another.
    pub(super) fn mac(&self, message: &[&[u8]]) -> Digest {
        let mut mac = self.0.clone();
        for bytes in message {
            mac.update(bytes);
        }
        Digest(mac.finalize().into_bytes().into())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// A digest, ours or one received.
#[derive(Clone, Copy)]
pub(super) struct Digest([u8; 32]);

impl Digest {
    /// A place to read one into.
    pub(super) const ZERO: Self = Self([0; 32]);

    /// The length of a digest in hex.
    pub(super) const HEX_LEN: usize = 64;

    /// Whether two digests are the same, in time that does not depend on where they differ.
    ///
    /// Folding the difference into one word leaves `subtle` a single word to judge: its loop over
    /// bytes costs as much as a third of a compression.
    pub(super) fn ct_eq(&self, other: &Self) -> Choice {
        let mut difference = 0;
        for (ours, theirs) in self.words().iter().zip(other.words()) {
            difference |= ours ^ theirs;
        }
        difference.ct_eq(&0)
    }

    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 hex digits, and tells whether one of them was uppercase.
    pub(super) fn from_hex(text: &[u8]) -> Result<(Self, Case), DigestFault> {
        let Ok(digits) = <&[u8; Self::HEX_LEN]>::try_from(text) else {
            return Err(DigestFault::Length { len: text.len() });
        };
        let mut bytes = [0; 32];
        let mut seen = 0;
        for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
            let [high, low] = pair.map(nibble);
            seen |= high | low;
            *byte = (high << 4) | (low & 0x0f);
        }
        if seen & NOT_HEX != 0 {
            // Only a text that is refused is read a second time.
            let at = digits.iter().position(|digit| nibble(*digit) & NOT_HEX != 0);
            return Err(DigestFault::Character { at: at.unwrap_or_default() });
        }
        let case = if seen & UPPERCASE == 0 { Case::Lower } else { Case::Upper };
        Ok((Self(bytes), case))
    }

    fn words(&self) -> [u64; 4] {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(self.0.as_chunks::<8>().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        words
    }
}

/// How a received digest is spelt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Lower,
    Upper,
}

const UPPERCASE: u8 = 0x40;
const NOT_HEX: u8 = 0x80;

/// The value of each byte as a hex digit, marked with what else there is to say about it.
const NIBBLES: [u8; 256] = {
    let mut table = [NOT_HEX; 256];
    let mut value = 0_u8;
    while value < 16 {
        #[expect(clippy::indexing_slicing, clippy::as_conversions, reason = "judged when compiled")]
        {
            table[b"0123456789abcdef"[value as usize] as usize] = value;
            if value > 9 {
                table[b"0123456789ABCDEF"[value as usize] as usize] = value | UPPERCASE;
            }
        }
        value = value.saturating_add(1);
    }
    table
};

fn nibble(digit: u8) -> u8 {
    #[expect(clippy::indexing_slicing, reason = "256 entries: every byte has one")]
    NIBBLES[usize::from(digit)]
}

/// Writes bytes as lowercase hex into twice as many.
pub(super) fn write_hex(bytes: &[u8], digits: &mut [u8]) {
    for (byte, pair) in bytes.iter().zip(digits.as_chunks_mut::<2>().0) {
        *pair = [hex_digit(byte >> 4), hex_digit(byte & 0x0f)];
    }
}

fn hex_digit(nibble: u8) -> u8 {
    b"0123456789abcdef".get(usize::from(nibble)).copied().unwrap_or_default()
}
