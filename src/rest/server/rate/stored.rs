//! A window's two stored forms, and what is refused in them.

use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{RateWindow, SPAN, Stored};
use crate::Timestamp;

/// The first byte of the bytes form says in what gaps are counted.
const NANOS: u8 = 1;
const MICROS: u8 = 2;
const NANOS_PER_MICRO: u64 = 1_000;

/// Says that bytes are none that [`RateWindow::to_bytes`] has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a rate window: {0}")]
pub struct RateWindowError(&'static str);

impl RateWindow {
    /// Writes the bytes form, for a binary column. An empty window has no bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.admitted == 0 {
            return Vec::new();
        }
        let fine = self.gaps.iter().any(|gap| gap % NANOS_PER_MICRO != 0);
        let (form, unit) = if fine { (NANOS, 1) } else { (MICROS, NANOS_PER_MICRO) };
        let mut bytes = Vec::new();
        bytes.push(form);
        bytes.extend(self.seconds.to_be_bytes());
        bytes.extend(self.nanos.to_be_bytes());
        self.write_gaps(unit, &mut bytes);
        bytes
    }

    /// Reads the bytes form.
    ///
    /// # Errors
    /// [`to_bytes`](Self::to_bytes) cannot have written it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RateWindowError> {
        let Some((form, rest)) = bytes.split_first() else {
            return Ok(Self::default());
        };
        let unit = match *form {
            NANOS => 1,
            MICROS => NANOS_PER_MICRO,
            _ => return Err(RateWindowError("unknown form")),
        };
        let (seconds, rest) = rest.split_first_chunk().ok_or(RateWindowError("cut off"))?;
        let (nanos, gaps) = rest.split_first_chunk().ok_or(RateWindowError("cut off"))?;
        let newest =
            Timestamp::from_parts(i64::from_be_bytes(*seconds), u32::from_be_bytes(*nanos));
        let newest = newest.ok_or(RateWindowError("newest is out of range"))?;
        Self::read(newest, gaps, unit).map_err(RateWindowError)
    }

    fn write_gaps(&self, unit: u64, bytes: &mut Vec<u8>) {
        self.gaps.iter().for_each(|gap| write(bytes, gap.checked_div(unit).unwrap_or(gap)));
    }

    fn read(newest: Timestamp, mut gaps: &[u8], unit: u64) -> Result<Self, &'static str> {
        let mut window = Self { admitted: 1, ..Self::default() };
        window.set_newest(newest);
        while !gaps.is_empty() {
            let gap = read(&mut gaps)?.saturating_mul(unit);
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

impl From<RateWindow> for Stored {
    fn from(window: RateWindow) -> Self {
        let mut gaps = Vec::new();
        window.write_gaps(1, &mut gaps);
        let newest = (window.admitted > 0).then(|| window.newest());
        Self { newest, gaps: URL_SAFE_NO_PAD.encode(gaps) }
    }
}

impl TryFrom<Stored> for RateWindow {
    type Error = &'static str;

    fn try_from(stored: Stored) -> Result<Self, &'static str> {
        match stored.newest {
            Some(newest) => {
                let gaps = URL_SAFE_NO_PAD.decode(stored.gaps);
                Self::read(newest, &gaps.map_err(|_| "gaps are not base64url")?, 1)
            }
            None if stored.gaps.is_empty() => Ok(Self::default()),
            None => Err("gaps without newest"),
        }
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
