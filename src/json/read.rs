//! Reads typed values: objects by their fields, texts by a function.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt::{self, Display};

use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{ParseErrorKind, Tracker};

/// A value that can be read from JSON with an error that names its field.
///
/// This trait replaces `serde::Deserialize`, which passes no [`Tracker`] and whose errors are
/// sentences.
pub(crate) trait FromJson<'de>: Sized {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error>;

    /// Returns the value of a missing field, or `None` if the field is required.
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

/// The names that an object's fields may have.
#[derive(Clone, Copy)]
pub(crate) enum Names {
    /// Any text.
    Text,
    /// Any text, including a text that Rust's strings cannot contain, such as half a surrogate
    /// pair. Reading names with `Any` is slower than with `Text`.
    Any,
}

/// Reads an object into `fields`. Rejects an array of the fields' values, which serde's derive
/// would accept.
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

/// A field's name, borrowed unless it has an escape. Without this type, serde would create a
/// `String` for every name.
#[derive(Deserialize)]
pub(crate) struct Name<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Returns a field's name as text. A name that Rust's strings cannot contain becomes empty, and
/// matches no field.
fn any_name(name: &RawValue) -> Cow<'_, str> {
    let quoted = name.get();
    match quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) if !text.contains('\\') => text.into(),
        _ => serde_json::from_str::<String>(quoted).unwrap_or_default().into(),
    }
}

/// A deserializer that reads a struct or a tagged enum with serde's derive only from an object.
pub(crate) struct ObjectOnly<D>(pub(crate) D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectOnly<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Reads a type with serde's derive, but only from an object, for a `stored_object!`.
pub(crate) fn read_stored<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    T::deserialize(ObjectOnly(from))
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
            f.write_str(self.0.expected())
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

/// Defines a struct with `FromJson`, which reads an object with these fields. An `Option` may be
/// null or missing. All other fields are required. Unknown fields are ignored.
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
    };
}

/// Implements `Deserialize` for a type that has `FromJson`. With a function
/// `&str -> Result<Self, E>`, also implements `FromJson`, from a string.
macro_rules! deserialize {
    ($name:ident) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::json::FromJson::read(from, &$crate::json::Tracker::new())
            }
        }
    };
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

/// Defines a struct with `Serialize` and `Deserialize`, which is stored as an object with these
/// fields. `check` returns an error if fields contradict each other.
macro_rules! stored_object {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident $(<$of:ident>)? {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty,)+
        }
        $(check: $check:expr)?
    ) => {
        $(#[$meta])*
        #[derive(serde::Serialize)]
        $vis struct $name $(<$of>)? {
            $($(#[$field_meta])* $field_vis $field: $type,)+
        }

        const _: () = {
            #[derive(serde::Deserialize)]
            struct Fields $(<$of>)? {
                $($(#[$field_meta])* $field: $type,)+
            }

            impl<'de $(, $of: serde::Deserialize<'de>)?> serde::Deserialize<'de> for $name $(<$of>)? {
                fn deserialize<R: serde::Deserializer<'de>>(from: R) -> Result<Self, R::Error> {
                    let Fields { $($field,)+ } = $crate::json::read_stored(from)?;
                    let read = Self { $($field,)+ };
                    $($check(&read).map_err(serde::de::Error::custom)?;)?
                    Ok(read)
                }
            }
        };
    };
}

pub(crate) use {deserialize, json_object, stored_object};
