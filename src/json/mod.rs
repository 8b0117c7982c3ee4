//! JSON as this crate reads and writes it.
//!
//! - **Errors never quote.** A [`ParseError`] says what is wrong, in which field and at which line
//!   and column, but not what stood there: values are callers' names and phone numbers, and errors
//!   end up in logs. (`serde_json`'s own errors do quote. Every type here has a `from_json`, which
//!   does not.)
//! - **Unknown fields are passed over**, so a service may add some. What the specification leaves
//!   open is kept as it came: see [`JsonObject`].
//! - **A nullable field may be absent** and reads as null. Writing always writes it.
//! - **A known field given twice is an error.** An unknown one may repeat.
//! - **An object must be an object**: no array of its values in order.
//! - **Depth**: unknown fields and kept objects may nest as deep as they like, since nothing
//!   recurses over them. A text over [`MAX_LEN`] bytes is refused before anything is read.

mod error;
mod object;
mod open_enum;

use alloc::vec::Vec;
use core::marker::PhantomData;

use serde::de::DeserializeSeed;
use serde::{Deserialize, Serialize};

pub use error::{ParseError, ParseErrorKind};
pub use object::JsonObject;
pub(crate) use object::fields;
pub use open_enum::Unrecognized;
pub(crate) use open_enum::open_enum;

/// The longest text that is read, in bytes: 16 MiB, many times a page of 100 calls.
pub const MAX_LEN: usize = 16 * 1024 * 1024;

/// Reads one value. Checks UTF-8 once, which is faster than letting each string check its own.
pub(crate) fn read<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, ParseError> {
    read_with(bytes, PhantomData)
}

/// Reads one value whose reading depends on what is known already.
pub(crate) fn read_with<'de, S: DeserializeSeed<'de>>(
    bytes: &'de [u8],
    seed: S,
) -> Result<S::Value, ParseError> {
    if bytes.len() > MAX_LEN {
        return Err(ParseError::too_long(bytes.len()));
    }
    let text = core::str::from_utf8(bytes)
        .map_err(|error| ParseError::not_utf8(bytes, error.valid_up_to()))?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    seed.deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| ParseError::new(text, &error))
}

/// Writes one of this crate's values.
///
/// Writing into memory fails only for maps whose keys are not strings and for `Serialize`
/// implementations that fail by themselves. No type of this crate has either.
pub(crate) fn write<T: Serialize>(value: &T) -> Vec<u8> {
    let written = serde_json::to_vec(value);
    debug_assert!(written.is_ok(), "a type of this crate always serialises");
    written.unwrap_or_default()
}

/// Reads a struct from a JSON object, and from nothing else: serde's derive would also take an
/// array of its fields in order.
///
/// Each field is `required`, or `nullable`: absent is then the same as null.
macro_rules! read_object {
    ($name:ident { $($field:ident: $mode:ident),+ $(,)? }) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                #[serde(field_identifier)]
                #[allow(non_camel_case_types)]
                enum Field {
                    $($field,)+
                    #[serde(other)]
                    Unknown,
                }

                struct Object;
                impl<'de> serde::de::Visitor<'de> for Object {
                    type Value = $name;

                    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<$name, A::Error> {
                        use serde::de::Error;
                        $(let mut $field = None;)+
                        while let Some(field) = map.next_key()? {
                            match field {
                                $(Field::$field => {
                                    if $field.is_some() {
                                        let name = stringify!($field).trim_start_matches("r#");
                                        return Err(A::Error::duplicate_field(name));
                                    }
                                    $field = Some(map.next_value()?);
                                })+
                                Field::Unknown => {
                                    map.next_value::<serde::de::IgnoredAny>()?;
                                }
                            }
                        }
                        Ok($name {
                            $($field: $crate::json::read_object!(@ $mode $field),)+
                        })
                    }
                }
                deserializer.deserialize_map(Object)
            }
        }
    };
    (@ required $field:ident) => {
        $field.ok_or_else(|| A::Error::missing_field(stringify!($field)))?
    };
    (@ nullable $field:ident) => {
        $field.unwrap_or_default()
    };
}

/// `from_json` and `to_json`, the same for every type that is a whole body.
macro_rules! json_body {
    ($name:ident) => {
        impl $name {
            /// Reads this from JSON, as [`json`](crate::json) says.
            ///
            /// # Errors
            /// What is wrong, in which field, at which line and column; never the value itself.
            pub fn from_json(bytes: &[u8]) -> Result<Self, $crate::json::ParseError> {
                $crate::json::read(bytes)
            }

            /// Writes this as JSON, without blanks.
            #[must_use]
            pub fn to_json(&self) -> alloc::vec::Vec<u8> {
                $crate::json::write(self)
            }
        }
    };
}

pub(crate) use {json_body, read_object};
