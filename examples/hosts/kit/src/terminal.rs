//! What a terminal shows: commands and the log print through here.
//!
//! Customers, their callers and receivers write many of the texts. A control character would move the cursor or
//! forge a line, and a bidirectional mark would change what is read. They are printed as JSON escapes them,
//! `\u009b`, so JSON stays JSON with the same values.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io;

/// Returns a text for one line: control characters, line separators and bidirectional marks are escaped.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || !text.contains(is_unsafe) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            other if is_unsafe(other) => _ = write!(escaped, "\\u{:04x}", u32::from(other)),
            other => escaped.push(other),
        }
    }
    escaped.into()
}

/// Tells whether a character is a control character (C0, DEL, C1), a line separator or a bidirectional mark.
pub(crate) fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2066}'..='\u{2069}')
}

/// Prints a text and a line feed on standard output, each line of it escaped.
///
/// # Errors
/// The text is lost: the reader has gone, or the disk is full.
pub fn print(text: impl Display) -> io::Result<()> {
    write(&mut io::stdout().lock(), &text.to_string())
}

/// Prints a text and a line feed on standard error, each line of it escaped. A closed pipe is ignored.
pub fn print_error(text: impl Display) {
    let _ = write(&mut io::stderr().lock(), &text.to_string());
}

fn write(out: &mut impl io::Write, text: &str) -> io::Result<()> {
    let lines: Vec<_> = text.split('\n').map(escaped).collect();
    out.write_all(format!("{}\n", lines.join("\n")).as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::{escaped, write};

    #[test]
    fn nothing_unsafe_is_written_and_json_keeps_its_values() {
        let named = [0x61c, 0x200e, 0x200f, 0x2028, 0x2029];
        let ranges = [0..=0x1f, 0x7f..=0x9f, 0x202a..=0x202e, 0x2066..=0x2069];
        let codes = named.into_iter().chain(ranges.into_iter().flatten());
        for character in codes.map(|code| char::from_u32(code).unwrap()) {
            let text = format!("a{character}b");
            let value = json!({ &*text: [&text] });
            let (shown, json) = (escaped(&text), escaped(&value.to_string()).into_owned());
            assert!(!shown.contains(character) && shown.len() > 3, "{character:?}: {shown:?}");
            assert!(!json.contains(character), "{character:?}: {json:?}");
            assert_eq!(json.parse::<Value>().unwrap(), value, "{character:?}");

            let mut out = Vec::new();
            write(&mut out, &text).unwrap();
            let kept = character == '\n';
            let expected = if kept { format!("{text}\n") } else { format!("{shown}\n") };
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{character:?}");
        }
        assert_eq!(escaped("Zoë 李 \u{200d} "), "Zoë 李 \u{200d} ");
    }
}
