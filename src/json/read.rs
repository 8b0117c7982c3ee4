//! Reads typed values, and keeps track of where it is in the text.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use core::cell::{Cell, RefCell};
use core::fmt::{self, Display};
use core::marker::PhantomData;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::ParseErrorKind;

/// A value that can be read from JSON with an error that names its field.
///
/// `serde::Deserialize` has no place for a [`Tracker`], and its errors are sentences.
pub(crate) trait FromJson<'de>: Sized {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error>;

    /// Returns what a field that is missing reads as; `None` if it is required.
    fn absent() -> Option<Self> {
        None
    }
}

/// An object with fields that this crate knows: see `json_object!`.
pub(crate) trait ReadObject<'de>: Sized {
    /// The fields read so far.
    type Fields;

    /// Reads the value of a field, or returns false if the object has no field of this name.
    fn read_field<A: MapAccess<'de>>(
        fields: &mut Self::Fields,
        name: &str,
        map: &mut A,
        tracker: &Tracker<'de>,
    ) -> Result<bool, A::Error>;

    fn build<E: Error>(fields: Self::Fields, tracker: &Tracker<'de>) -> Result<Self, E>;
}

/// Two sets of fields in one object.
impl<'de, A: ReadObject<'de>, B: ReadObject<'de>> ReadObject<'de> for (A, B) {
    type Fields = (A::Fields, B::Fields);

    fn read_field<M: MapAccess<'de>>(
        (a, b): &mut Self::Fields,
        name: &str,
        map: &mut M,
        tracker: &Tracker<'de>,
    ) -> Result<bool, M::Error> {
        Ok(A::read_field(a, name, map, tracker)? || B::read_field(b, name, map, tracker)?)
    }

    fn build<E: Error>((a, b): Self::Fields, tracker: &Tracker<'de>) -> Result<Self, E> {
        Ok((A::build(a, tracker)?, B::build(b, tracker)?))
    }
}

/// The place where a reader is, what it expects there, and what it found wrong.
pub(crate) struct Tracker<'de> {
    steps: [Cell<Step<'de>>; MAX_STEPS],
    depth: Cell<usize>,
    expected: Cell<&'static str>,
    fault: RefCell<Option<(ParseErrorKind, String)>>,
}

/// The most levels that a path names: 5. The bodies of this crate have four.
const MAX_STEPS: usize = 5;

#[derive(Clone, Copy)]
enum Step<'de> {
    Start,
    Field(&'de str),
    Item(usize),
}

impl<'de> Tracker<'de> {
    pub(crate) fn new() -> Self {
        Self {
            steps: [const { Cell::new(Step::Start) }; MAX_STEPS],
            depth: Cell::new(0),
            expected: Cell::new("something else"),
            fault: RefCell::new(None),
        }
    }

    /// Notes what kind of value is read next.
    pub(crate) fn expect(&self, what: &'static str) {
        self.expected.set(what);
    }

    /// Notes that the values of an object or an array follow. A reader that fails before
    /// [`leave`](Self::leave) does not call it, so that the path stays where it was.
    pub(crate) fn enter(&self) {
        self.depth.set(self.depth.get().saturating_add(1));
        self.step(Step::Start);
    }

    pub(crate) fn leave(&self) {
        self.depth.set(self.depth.get().saturating_sub(1));
    }

    /// Notes which field is read next.
    pub(crate) fn field(&self, name: &'de str) {
        self.step(Step::Field(name));
    }

    /// Notes which item of an array is read next.
    pub(crate) fn item(&self, index: usize) {
        self.step(Step::Item(index));
    }

    fn step(&self, step: Step<'de>) {
        if let Some(slot) = self.depth.get().checked_sub(1).and_then(|at| self.steps.get(at)) {
            slot.set(step);
        }
    }

    /// Makes a seed of a type.
    pub(crate) fn seed<T: FromJson<'de>>(&self) -> Tracked<'_, 'de, T> {
        Tracked(self, PhantomData)
    }

    /// Reads the value of a field that may be given once.
    pub(crate) fn once<S: DeserializeSeed<'de>, A: MapAccess<'de>>(
        &self,
        slot: &mut Option<S::Value>,
        map: &mut A,
        seed: S,
    ) -> Result<(), A::Error> {
        if slot.is_some() {
            return Err(self.reject(ParseErrorKind::Duplicate, "given twice"));
        }
        *slot = Some(map.next_value_seed(seed)?);
        Ok(())
    }

    /// Returns the value of a field that must not be missing, after the whole object was read.
    pub(crate) fn required<T, E: Error>(
        &self,
        slot: Option<T>,
        name: &'static str,
    ) -> Result<T, E> {
        slot.ok_or_else(|| {
            self.field(name);
            self.reject(ParseErrorKind::Missing, "required but missing")
        })
    }

    /// Records what is wrong where the reader is. The reason must not quote a value.
    pub(crate) fn reject<E: Error>(&self, kind: ParseErrorKind, reason: impl Display) -> E {
        let error = E::custom(&reason);
        self.fault.replace(Some((kind, reason.to_string())));
        error
    }

    /// Returns what was rejected. By default a value of another kind, which serde found.
    pub(super) fn fault(&self) -> (ParseErrorKind, String) {
        let expected = || alloc::format!("expected {}", self.expected.get());
        self.fault.take().unwrap_or_else(|| (ParseErrorKind::Value, expected()))
    }

    /// Returns the path to where the reader is: `data[3].caller.phone_number`.
    pub(super) fn path(&self) -> Option<String> {
        let mut path = String::new();
        for step in self.steps.iter().take(self.depth.get()) {
            match step.get() {
                Step::Start => {}
                Step::Field(name) if path.is_empty() => path.push_str(shown(name)),
                Step::Field(name) => path.extend([".", shown(name)]),
                Step::Item(index) => path.push_str(&alloc::format!("[{index}]")),
            }
        }
        (!path.is_empty()).then_some(path)
    }
}

/// Returns a name that is written as this API writes names, or a question mark for what may be
/// data.
fn shown(name: &str) -> &str {
    let ours = name.len() <= 40
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    if ours { name } else { "?" }
}

/// A seed that reads a `T`.
pub(crate) struct Tracked<'t, 'de, T>(
    pub(super) &'t Tracker<'de>,
    pub(super) PhantomData<fn() -> T>,
);

impl<'de, T: FromJson<'de>> DeserializeSeed<'de> for Tracked<'_, 'de, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        T::read(from, self.0)
    }
}

/// The names that an object's fields may have.
#[derive(Clone, Copy)]
pub(crate) enum Names {
    /// Any text.
    Text,
    /// Any text, and what no text can hold, such as half a surrogate pair: no field of ours, and
    /// slower.
    Any,
}

/// Reads an object, and nothing else: serde's derive would also take an array of its fields. Begins
/// with these fields.
pub(crate) fn read_object<'de, T: ReadObject<'de>, D: Deserializer<'de>>(
    from: D,
    tracker: &Tracker<'de>,
    fields: T::Fields,
    names: Names,
) -> Result<T, D::Error> {
    tracker.expect("an object");
    from.deserialize_map(ObjectReader::<T> { tracker, fields, names })
}

struct ObjectReader<'t, 'de, T: ReadObject<'de>> {
    tracker: &'t Tracker<'de>,
    fields: T::Fields,
    names: Names,
}

impl<'de, T: ReadObject<'de>> Visitor<'de> for ObjectReader<'_, 'de, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let Self { tracker, mut fields, names } = self;
        let next_name = |map: &mut A| match names {
            Names::Text => Ok(map.next_key()?.map(|Name(name)| name)),
            Names::Any => Ok(map.next_key()?.map(any_name)),
        };
        tracker.enter();
        while let Some(name) = next_name(&mut map)? {
            tracker.field(match name {
                Cow::Borrowed(name) => name,
                Cow::Owned(_) => "?", // it was written with an escape, as no name of ours is
            });
            if !T::read_field(&mut fields, &name, &mut map, tracker)? {
                map.next_value::<IgnoredAny>()?;
            }
        }
        let object = T::build(fields, tracker)?;
        tracker.leave();
        Ok(object)
    }
}

/// A field's name, borrowed unless it has an escape: serde would make a `String` of every name.
#[derive(Deserialize)]
pub(crate) struct Name<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Returns a field's name as text; what no text can hold is empty, which no name of ours is.
fn any_name(name: &RawValue) -> Cow<'_, str> {
    let quoted = name.get();
    match quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) if !text.contains('\\') => text.into(),
        _ => serde_json::from_str::<String>(quoted).unwrap_or_default().into(),
    }
}

/// Reads a string and parses it.
pub(crate) fn read_text<'de, T, E: Display, D: Deserializer<'de>>(
    from: D,
    expected: &'static str,
    parse: fn(&str) -> Result<T, E>,
    tracker: &Tracker<'de>,
) -> Result<T, D::Error> {
    struct Text<'t, 'de, T, E>(&'t Tracker<'de>, fn(&str) -> Result<T, E>);

    impl<T, E: Display> Visitor<'_> for Text<'_, '_, T, E> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0.expected.get())
        }

        fn visit_str<F: Error>(self, text: &str) -> Result<T, F> {
            let Self(tracker, parse) = self;
            parse(text).map_err(|error| tracker.reject(ParseErrorKind::Value, error))
        }
    }

    tracker.expect(expected);
    from.deserialize_str(Text(tracker, parse))
}

/// Returns the JSON name of a Rust field: `r#type` is `type`.
pub(crate) const fn field_name(ident: &'static str) -> &'static str {
    match ident.as_bytes() {
        [b'r', b'#', ..] => ident.split_at(2).1,
        _ => ident,
    }
}

/// Defines a struct that is read from an object with these fields. An `Option` may be null or
/// missing, everything else is required; unknown fields are ignored.
macro_rules! json_object {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident $(<$life:lifetime>)? {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty,)+
        }
    ) => {
        $(#[$meta])*
        $vis struct $name $(<$life>)? {
            $($(#[$field_meta])* $field_vis $field: $type,)+
        }

        const _: () = {
            use $crate::json::{FromJson, Names, ReadObject, Tracker, field_name, read_object};

            #[derive(Default)]
            pub(crate) struct Fields $(<$life>)? {
                $($field: Option<$type>,)+
            }

            impl<'de> ReadObject<'de> for $name $(<$life>)? {
                type Fields = Fields $(<$life>)?;

                fn read_field<A: serde::de::MapAccess<'de>>(
                    fields: &mut Self::Fields,
                    name: &str,
                    map: &mut A,
                    tracker: &Tracker<'de>,
                ) -> Result<bool, A::Error> {
                    $(if name == const { field_name(stringify!($field)) } {
                        tracker.once(&mut fields.$field, map, tracker.seed())?;
                        return Ok(true);
                    })+
                    Ok(false)
                }

                fn build<E: serde::de::Error>(
                    fields: Self::Fields,
                    tracker: &Tracker<'de>,
                ) -> Result<Self, E> {
                    Ok(Self {
                        $($field: tracker.required(
                            fields.$field.or_else(FromJson::absent),
                            const { field_name(stringify!($field)) },
                        )?,)+
                    })
                }
            }

            impl<'de> FromJson<'de> for $name $(<$life>)? {
                fn read<D: serde::Deserializer<'de>>(
                    from: D,
                    tracker: &Tracker<'de>,
                ) -> Result<Self, D::Error> {
                    read_object(from, tracker, Fields::default(), Names::Text)
                }
            }
        };
        $crate::json::deserialize!($name $(<$life>)?);
    };
}

/// Implements `Deserialize` for a type that has `FromJson`.
macro_rules! deserialize {
    ($name:ident $(<$life:lifetime>)?) => {
        impl<'de> serde::Deserialize<'de> for $name $(<$life>)? {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::json::FromJson::read(from, &$crate::json::Tracker::new())
            }
        }
    };
}

/// Reads a type from a string by a function `&str -> Result<Self, E>`.
macro_rules! json_text {
    ($name:ident, $expected:expr, $parse:expr) => {
        impl<'de> $crate::json::FromJson<'de> for $name {
            fn read<D: serde::Deserializer<'de>>(
                from: D,
                tracker: &$crate::json::Tracker<'de>,
            ) -> Result<Self, D::Error> {
                $crate::json::read_text(from, $expected, $parse, tracker)
            }
        }

        $crate::json::deserialize!($name);
    };
}

pub(crate) use {deserialize, json_object, json_text};
