//! Stored numbers: which this crate can have stored, and the version after a version.

use serde::{Deserialize, Deserializer};

use super::schedule::{FAILURES_TO_DISABLE, MAX_ATTEMPTS};

/// The largest version or generation: what an `integer` column holds.
const MAX_VERSION: u32 = i32::MAX.unsigned_abs();

/// Returns the version or generation after this one.
pub(super) fn next_version(version: u32) -> u32 {
    if version < MAX_VERSION { version.saturating_add(1) } else { 0 }
}

/// Returns the version or generation before this one.
pub(super) fn previous_version(version: u32) -> u32 {
    version.checked_sub(1).unwrap_or(MAX_VERSION)
}

pub(super) fn optional_version<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    version(deserializer).map(Some)
}

pub(super) fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        version @ 0..=MAX_VERSION => Ok(version),
        _ => Err(serde::de::Error::custom(format_args!(
            "version or generation is more than {MAX_VERSION}"
        ))),
    }
}

/// Refuses any other number: its failure would end the delivery too early or too late.
pub(super) fn attempt<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    match u8::deserialize(deserializer)? {
        number @ 1..=MAX_ATTEMPTS => Ok(number),
        _ => Err(serde::de::Error::custom(format_args!("number is not from 1 to {MAX_ATTEMPTS}"))),
    }
}

pub(super) fn attempts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    match u8::deserialize(deserializer)? {
        attempts @ 0..=MAX_ATTEMPTS => Ok(attempts),
        _ => Err(serde::de::Error::custom("attempts is more than 6")),
    }
}

pub(super) fn failures<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    match u8::deserialize(deserializer)? {
        failures @ 0..=FAILURES_TO_DISABLE => Ok(failures),
        _ => Err(serde::de::Error::custom(format_args!(
            "failures is more than {FAILURES_TO_DISABLE}"
        ))),
    }
}
