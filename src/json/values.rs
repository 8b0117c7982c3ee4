//! Reads common values of fields: texts, numbers, null, arrays.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Number;
use serde_json::value::RawValue;

use super::tracker::Tracked;
use super::{FromJson, ParseErrorKind, Tracker};

impl<'de> FromJson<'de> for String {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        tracker.expect("a string");
        Self::deserialize(from)
    }
}

impl<'de> FromJson<'de> for bool {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        tracker.expect("a boolean");
        Self::deserialize(from)
    }
}

impl<'de> FromJson<'de> for &'de RawValue {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        tracker.expect("a value");
        Self::deserialize(from)
    }
}

/// An integral number, with or without a fraction of zeros: `240` and `240.0` are the same number.
impl<'de> FromJson<'de> for i64 {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        tracker.expect("a 64-bit integer");
        let number = Number::deserialize(from)?;
        let integer = number.as_i64().or_else(|| integral(number.as_f64()?));
        integer.ok_or_else(|| tracker.reject(ParseErrorKind::Value, "expected a 64-bit integer"))
    }
}

#[expect(clippy::as_conversions, reason = "integral, and within 2^53; floats have no `TryFrom`")]
fn integral(number: f64) -> Option<i64> {
    // Beyond 2^53 a float has been rounded already.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (number % 1.0 == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

/// Null, or a value. A missing field is null.
impl<'de, T: FromJson<'de>> FromJson<'de> for Option<T> {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        from.deserialize_option(Tracked::<Self>(tracker, PhantomData))
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<'de, T: FromJson<'de>> Visitor<'de> for Tracked<'_, 'de, Option<T>> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_none<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Option<T>, D::Error> {
        T::read(from, self.0).map(Some)
    }
}

impl<'de, T: FromJson<'de>> FromJson<'de> for Vec<T> {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        read_items(from, tracker, |_| Ok(()))
    }
}

/// Reads an array, and checks each item. The error of `check` must not quote the item.
pub(crate) fn read_items<'de, T: FromJson<'de>, D: Deserializer<'de>>(
    from: D,
    tracker: &Tracker<'de>,
    check: impl FnMut(&T) -> Result<(), &'static str>,
) -> Result<Vec<T>, D::Error> {
    tracker.expect("an array");
    from.deserialize_seq(ItemsReader { tracker, check, of: PhantomData })
}

struct ItemsReader<'t, 'de, T, F> {
    tracker: &'t Tracker<'de>,
    check: F,
    of: PhantomData<fn() -> T>,
}

impl<'de, T, F> Visitor<'de> for ItemsReader<'_, 'de, T, F>
where
    T: FromJson<'de>,
    F: FnMut(&T) -> Result<(), &'static str>,
{
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let tracker = self.tracker;
        let mut items = Vec::new();
        tracker.enter();
        tracker.item(0);
        while let Some(item) = seq.next_element_seed(tracker.seed())? {
            (self.check)(&item).map_err(|error| tracker.reject(ParseErrorKind::Value, error))?;
            items.push(item);
            tracker.item(items.len());
        }
        tracker.leave();
        Ok(items)
    }
}
