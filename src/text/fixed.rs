//! A buffer for a short text, without allocation.

use core::fmt;

/// A text, or other bytes, of at most `MAX` bytes, stored inline.
#[derive(Clone, Copy)]
pub(crate) struct FixedText<const MAX: usize> {
    bytes: [u8; MAX],
    len: usize,
}

#[expect(clippy::expect_used, reason = "`MAX` is the length of the longest text")]
impl<const MAX: usize> FixedText<MAX> {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; MAX], len: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// Appends `len` bytes, and returns these bytes to be written.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        let (_, free) = self.bytes.split_at_mut(self.len);
        self.len = self.len.wrapping_add(len);
        free.get_mut(..len).expect("no text is longer than `MAX`")
    }

    /// Removes this many bytes from the end.
    pub(crate) fn shorten(&mut self, by: usize) {
        self.len = self.len.saturating_sub(by);
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        let (written, _) = self.bytes.split_at(self.len);
        written
    }

    /// Returns the text, if only text was added.
    pub(crate) fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).expect("nothing but text was pushed")
    }
}

impl<const MAX: usize> fmt::Write for FixedText<MAX> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}
