//! Text that must not be seen: wiped when dropped, never shown by `Debug`.

use alloc::boxed::Box;
use core::fmt;

use hmac::digest::zeroize::Zeroize;

/// The text of a secret. `hmac` and `sha2` wipe what they derive from it; this wipes the text.
#[derive(Clone)]
pub(crate) struct Secret(Box<[u8]>);

impl Secret {
    pub(crate) fn new(text: &str) -> Self {
        Self(Box::from(text.as_bytes()))
    }

    /// A prefix and 32 random bytes in hex, without leaving copies of them behind.
    pub(crate) fn from_random(prefix: &str, mut bytes: [u8; 32]) -> Self {
        let mut text = alloc::vec![0; prefix.len().saturating_add(64)];
        let (head, digits) = text.split_at_mut(prefix.len());
        head.copy_from_slice(prefix.as_bytes());
        // Sixty-four digits for 32 bytes: the lengths fit.
        let written = hex::encode_to_slice(bytes, digits);
        debug_assert!(written.is_ok(), "two digits a byte");
        bytes.zeroize();
        Self(text.into_boxed_slice())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn as_str(&self) -> &str {
        // Made from a `str` and never changed, so this cannot fail.
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
