//! A window's stored form, and what is refused in it.

use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::gaps::{self, Gaps};
use super::{RateWindow, SPAN};
use crate::time::Timestamp;

impl Serialize for RateWindow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let gaps: Vec<u8> = self.gaps.bytes().collect();
        let newest = (self.admitted > 0).then_some(self.newest);
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
        let mut window = RateWindow { newest, admitted: 1, ..RateWindow::default() };
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (gap, len) =
                gaps::read(rest.iter().copied()).ok_or("a gap is cut off or too long")?;
            let (read, after) = rest.split_at_checked(len).unwrap_or_default();
            if len > 1 && read.last() == Some(&0) {
                return Err("a gap has more bytes than it needs");
            }
            rest = after;
            window.spread = window.spread.saturating_add(gap);
            window.admitted = window.admitted.saturating_add(1);
            if window.spread >= SPAN {
                return Err("gaps add up to 60 seconds or more");
            }
            if window.admitted > u32::from(u16::MAX) {
                return Err("more admissions than any quota has");
            }
        }
        window.gaps = Gaps::from_bytes(bytes);
        Ok(window)
    }
}
