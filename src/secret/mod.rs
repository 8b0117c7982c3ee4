//! Secret text: wiped when dropped, never shown by `Debug`, and removed from received texts.

pub(crate) mod mac;

use alloc::boxed::Box;
use core::fmt;

use hmac::digest::zeroize::Zeroize;

/// The text of a secret. `hmac` and `sha2` wipe the values that they derive from the text. This
/// type wipes the text.
#[derive(Clone)]
pub(crate) struct Secret(Box<[u8]>);

impl Secret {
    pub(crate) fn new(text: &str) -> Self {
        Self(Box::from(text.as_bytes()))
    }

    /// Creates a secret from a prefix and 32 random bytes in hex, and leaves no copies of the
    /// bytes.
    #[expect(clippy::expect_used, reason = "there are two digits for each byte")]
    pub(crate) fn from_random(prefix: &str, mut bytes: [u8; 32]) -> Self {
        let mut digits = [0; 64];
        hex::encode_to_slice(bytes, &mut digits).expect("32 bytes have 64 digits");
        bytes.zeroize();
        let text = [prefix.as_bytes(), &digits].concat();
        digits.zeroize();
        Self(text.into_boxed_slice())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    #[expect(clippy::expect_used, reason = "it was made from text and never changes")]
    pub(crate) fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).expect("a secret is text")
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

#[cfg(any(feature = "client", feature = "service"))]
pub(crate) use excerpt::excerpt;
#[cfg(feature = "events")]
pub(crate) use excerpt::one_line;

/// Excerpts of texts that may contain the service's secrets. For example, an error page may repeat
/// a request's headers, or show a configuration.
#[cfg(feature = "events")]
mod excerpt {
    use alloc::string::String;

    /// The prefix of every signing secret, and the ends of the two prefixes of API keys.
    const MARKS: [&str; 3] = ["whsec_", "_live_", "_test_"];

    /// Returns at most the first `max` bytes of a body. Bytes that are not UTF-8, and texts that
    /// look like a secret, are replaced.
    pub(crate) fn excerpt(body: &[u8], max: usize) -> String {
        let kept = match body.split_at_checked(max) {
            Some((kept, more)) if !more.is_empty() => whole_characters(kept),
            _ => body,
        };
        redacted(&String::from_utf8_lossy(kept))
    }

    /// Returns at most the first `max` bytes of a text, as a part of a line. Characters that would
    /// end the line, and invisible characters, are escaped. Texts that look like a secret are
    /// replaced.
    pub(crate) fn one_line(text: &str, max: usize) -> String {
        // Marks that direct the text are no control characters, and yet can turn a line around.
        let hidden = |c: char| {
            c.is_control()
                || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        let mut line = String::new();
        for c in excerpt(text.as_bytes(), max).chars() {
            if hidden(c) { line.extend(c.escape_default()) } else { line.push(c) }
        }
        if text.len() > max {
            line.push_str("...");
        }
        line
    }

    /// Removes a character at the end that the cut has truncated.
    fn whole_characters(cut: &[u8]) -> &[u8] {
        let broken = cut.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
        cut.get(..cut.len().saturating_sub(broken)).unwrap_or(cut)
    }

    /// Replaces the text after each mark, up to a character that ends a secret in every text
    /// format.
    fn redacted(text: &str) -> String {
        let ends = |c: char| !c.is_ascii_graphic() || "\"'<>,;&\\()[]{}".contains(c);
        let mut clean = String::new();
        let mut rest = text;
        while let Some((before, after)) = first_mark(rest) {
            clean.push_str(before);
            rest = after.trim_start_matches(|c| !ends(c));
            if rest.len() < after.len() {
                clean.push_str("[redacted]");
            }
        }
        clean.push_str(rest);
        clean
    }

    /// Returns the text up to the end of its first mark, and the rest.
    fn first_mark(text: &str) -> Option<(&str, &str)> {
        let end = |mark: &&str| Some(text.find(*mark)?.saturating_add(mark.len()));
        text.split_at_checked(MARKS.iter().filter_map(end).min()?)
    }
}
