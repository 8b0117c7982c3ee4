//! What others send back may hold a secret of ours: an error page may echo a request's headers, or
//! show a configuration.

use alloc::string::String;

/// What every signing secret begins with, and what stands in the prefix of every API key, whatever
/// the product.
const MARKS: [&str; 3] = ["whsec_", "_live_", "_test_"];

/// The beginning of a body, of at most so many bytes: what is not UTF-8 is replaced, and so is
/// whatever looks like a secret.
pub(crate) fn excerpt(body: &[u8], max: usize) -> String {
    let kept = match body.split_at_checked(max) {
        Some((kept, more)) if !more.is_empty() => whole_characters(kept),
        _ => body,
    };
    redacted(&String::from_utf8_lossy(kept))
}

/// Without the beginning of a character that was cut through, which is not the sender's fault.
fn whole_characters(cut: &[u8]) -> &[u8] {
    let broken = cut.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
    cut.get(..cut.len().saturating_sub(broken)).unwrap_or(cut)
}

/// The text without whatever looks like a signing secret or an API key: what follows a mark, up to
/// what cannot be part of either in any text format.
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

/// The text up to the end of its first mark, and what follows it.
fn first_mark(text: &str) -> Option<(&str, &str)> {
    let ends = MARKS.iter().filter_map(|mark| Some(text.find(mark)?.saturating_add(mark.len())));
    text.split_at_checked(ends.min()?)
}
