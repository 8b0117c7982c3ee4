//! A [`Timestamp`] written as RFC 3339.

use core::fmt;

use super::Timestamp;
use crate::text::FixedText;

/// RFC 3339 in UTC, with `Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(text(*self, "Z").as_str())
    }
}

/// Writes the text of `Display`, so that a failed assertion shows an instant, not a number of
/// seconds.
impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(feature = "events")]
impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text(*self, "Z").as_str())
    }
}

/// Writes a field with `+00:00`, as in event envelopes: `#[serde(serialize_with = ..)]`.
#[cfg(feature = "events")]
pub(crate) fn offset<S: serde::Serializer>(
    instant: &Timestamp,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text(*instant, "+00:00").as_str())
}

/// Returns a text such as `2026-03-01T09:30:00.25`, followed by `utc`. The longest text is
/// `9999-12-31T23:59:59.999999999+00:00`.
// Not called: a returned text is copied while its last bytes are still being stored, which costs a
// sixth of a page of them.
#[inline]
fn text(instant: Timestamp, utc: &str) -> FixedText<35> {
    let (year, month, day) = instant.date();
    let (hour, minute, second) = instant.time_of_day();
    let [[y1, y2], [y3, y4]] = [year / 100, year % 100].map(two_digits);
    let [[m1, m2], [d1, d2]] = [month, day].map(two_digits);
    let [[h1, h2], [n1, n2], [s1, s2]] = [hour, minute, second].map(two_digits);
    let mut text = FixedText::new();
    text.push(&[
        y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2,
    ]);
    let nanos = instant.subsec_nanos();
    if nanos > 0 {
        let pairs = [nanos / 10_000_000, nanos / 100_000, nanos / 1_000, nanos / 10];
        let [[f1, f2], [f3, f4], [f5, f6], [f7, f8]] = pairs.map(|pair| two_digits(pair % 100));
        let [_, f9] = two_digits(nanos % 10);
        let fraction = [b'.', f1, f2, f3, f4, f5, f6, f7, f8, f9];
        text.push(&fraction);
        text.shorten(fraction.iter().rev().take_while(|digit| **digit == b'0').count());
    }
    text.push(utc.as_bytes());
    text
}

/// The digits of each number below 100.
const PAIRS: &[[u8; 2]] = b"\
    0001020304050607080910111213141516171819\
    2021222324252627282930313233343536373839\
    4041424344454647484950515253545556575859\
    6061626364656667686970717273747576777879\
    8081828384858687888990919293949596979899"
    .as_chunks()
    .0;

#[expect(clippy::expect_used, reason = "years are split, and all else is below 100")]
fn two_digits(number: u32) -> [u8; 2] {
    let [number, ..] = number.to_le_bytes();
    *PAIRS.get(usize::from(number)).expect("a number below 100")
}
