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
