//! Stored numbers: which this crate can have stored, and the version after a version.

use serde::{Deserialize, Deserializer};

use super::schedule::{FAILURES_TO_DISABLE, FIRST_FAILURES_TO_SUSPECT, MAX_ATTEMPTS};

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
    at_most(MAX_ATTEMPTS, "attempts", deserializer)
}

/// How many reminders there are.
pub(super) const MAX_REMINDERS: u8 = 2;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
pub(super) fn is_zero(number: &u8) -> bool {
    *number == 0
}

pub(super) fn first_failures<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    at_most(FIRST_FAILURES_TO_SUSPECT, "first_failures", deserializer)
}

pub(super) fn reminders<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    at_most(MAX_REMINDERS, "reminders", deserializer)
}

pub(super) fn failures<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    at_most(FAILURES_TO_DISABLE, "failures", deserializer)
}

fn at_most<'de, D: Deserializer<'de>>(
    max: u8,
    field: &str,
    deserializer: D,
) -> Result<u8, D::Error> {
    let number = u8::deserialize(deserializer)?;
    let fits = (number <= max).then_some(number);
    fits.ok_or_else(|| serde::de::Error::custom(format_args!("{field} is more than {max}")))
}
