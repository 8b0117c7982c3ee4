//! A window's stored form, and what is refused in it.

use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{RateWindow, SPAN};
use crate::Timestamp;

impl Serialize for RateWindow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut gaps = Vec::new();
        self.gaps.iter().for_each(|gap| write(&mut gaps, gap));
        let newest = (self.admitted > 0).then(|| self.newest());
        let mut stored = serializer.serialize_struct("RateWindow", 2)?;
        stored.serialize_field("newest", &newest)?;
        stored.serialize_field("gaps", &URL_SAFE_NO_PAD.encode(gaps))?;
        stored.end()
    }
}

impl<'de> Deserialize<'de> for RateWindow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Stored::deserialize(deserializer)?.check().map_err(de::Error::custom)
    }
}

#[derive(Deserialize)]
struct Stored {
    #[serde(default)]
    newest: Option<Timestamp>,
    #[serde(default)]
    gaps: String,
}

impl Stored {
    fn check(self) -> Result<RateWindow, &'static str> {
        let Some(newest) = self.newest else {
            return if self.gaps.is_empty() {
                Ok(RateWindow::default())
            } else {
                Err("gaps without newest")
            };
        };
        let bytes = URL_SAFE_NO_PAD.decode(self.gaps).map_err(|_| "gaps are not base64url")?;
        let mut window = RateWindow { admitted: 1, ..RateWindow::default() };
        window.set_newest(newest);
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let gap = read(&mut rest)?;
            window.spread = window.spread.saturating_add(gap);
            window.admitted = window.admitted.saturating_add(1);
            if window.spread >= SPAN {
                return Err("gaps add up to 60 seconds or more");
            }
            if window.admitted > u32::from(u16::MAX) {
                return Err("more admissions than any quota has");
            }
            window.gaps.push(gap);
        }
        Ok(window)
    }
}

/// A gap, always below 60 seconds, has at most 36 bits.
const MAX_LEN: usize = 6;

fn write(bytes: &mut Vec<u8>, gap: u64) {
    let mut rest = gap;
    while rest >= 0x80 {
        bytes.push(low_bits(rest).wrapping_add(0x80));
        rest >>= 7;
    }
    bytes.push(low_bits(rest));
}

fn low_bits(number: u64) -> u8 {
    let [low, ..] = number.to_le_bytes();
    low & 0x7f
}

fn read(rest: &mut &[u8]) -> Result<u64, &'static str> {
    let mut gap = 0;
    for (shift, len) in (0..).step_by(7).zip(1..=MAX_LEN) {
        let (byte, after) = rest.split_first().ok_or("a gap is cut off")?;
        *rest = after;
        gap |= u64::from(byte & 0x7f) << shift;
        if *byte == 0 && len > 1 {
            return Err("a gap has more bytes than it needs");
        }
        if *byte < 0x80 {
            return Ok(gap);
        }
    }
    Err("a gap is too long")
}
