//! Reads and writes JSON, by the same rules in the whole crate.
//!
//! ```
//! use call_assistant::json::ParseErrorKind;
//! use call_assistant::model::Account;
//!
//! let error = Account::from_json(br#"{"id":"acct_1","livemode":"yes"}"#).unwrap_err();
//! assert_eq!(error.kind(), ParseErrorKind::Value);
//! assert_eq!(error.to_string(), "livemode: expected a boolean at line 1 column 31");
//! ```
//!
//! - **Errors never quote values.** A [`ParseError`] reports the field, the line, the column and
//!   the expected kind of value. Received values can be callers' names and phone numbers, and
//!   errors are logged. Use this crate's `from_json` instead of `serde_json::from_slice`, whose
//!   errors quote values.
//! - **Unknown fields are ignored**, so that a service may add fields. Objects whose fields the
//!   [protocol](crate::guide::protocol) does not define are kept unchanged: see [`JsonObject`].
//! - **A nullable field may be missing.** A reader reads a missing nullable field as null. A writer
//!   writes every nullable field.
//! - **A known field given twice is an error.** An unknown field may be repeated.
//! - **An object must be a JSON object**, not an array of the object's values.
//! - **Depth is unlimited** in unknown fields and in kept objects, because the reader does not
//!   recurse into these values. A text of more than [`MAX_JSON_LEN`] bytes is refused before it is
//!   read.
//!
//! # Open and closed enums
//!
//! If the protocol defines a string's values, the string's type is an *open* enum. If this version
//! does not know a text, the last variant, `Other`, contains the text as an [`Unrecognized`]. The
//! enum's constant `KNOWN` lists all other variants, for example for the choices of a form. An open
//! enum is `#[non_exhaustive]`, because a later version may know more texts.
//!
//! Public enums without `Other`, and structs with public fields, are also `#[non_exhaustive]`. If a
//! type is not `#[non_exhaustive]`, its documentation has a line `Closed:` with the reason why
//! nothing can be added.

mod error;
mod object;
mod open_enum;
mod read;
mod tracker;
mod values;

use alloc::vec::Vec;

use serde::Serialize;

pub use error::{ParseError, ParseErrorKind};
pub use object::JsonObject;
pub(crate) use object::RawJson;
#[cfg(feature = "explain")]
pub(crate) use object::fields;
pub use open_enum::Unrecognized;
pub(crate) use open_enum::open_enum;
#[cfg(feature = "service")]
pub(crate) use read::ObjectOnly;
pub(crate) use read::{
    FromJson, Name, Names, ReadObject, deserialize, field_name, json_object, read_object,
    read_stored, read_text, stored_object,
};
pub(crate) use tracker::Tracker;
pub(crate) use values::read_items;

/// The longest text that is read: 16 MiB, many times the size of a page of 100 calls.
pub const MAX_JSON_LEN: usize = 16 * 1024 * 1024;

/// Reads one value.
pub(crate) fn read<'de, T: FromJson<'de>>(bytes: &'de [u8]) -> Result<T, ParseError> {
    read_with(bytes, |from, tracker| T::read(from, tracker))
}

/// Reads one value with a function, and checks UTF-8 once.
pub(crate) fn read_with<'de, T>(
    bytes: &'de [u8],
    read: impl FnOnce(JsonReader<'_, 'de>, &Tracker<'de>) -> serde_json::Result<T>,
) -> Result<T, ParseError> {
    if bytes.len() > MAX_JSON_LEN {
        return Err(ParseError::too_long(bytes.len()));
    }
    let text = core::str::from_utf8(bytes).map_err(|error| {
        ParseError::not_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default())
    })?;
    let tracker = Tracker::new();
    let mut from = serde_json::Deserializer::from_str(text);
    read(&mut from, &tracker)
        .and_then(|value| from.end().map(|()| value))
        .map_err(|error| ParseError::new(text, &tracker, &error))
}

/// The reader of a text.
pub(crate) type JsonReader<'r, 'de> =
    &'r mut serde_json::Deserializer<serde_json::de::StrRead<'de>>;

/// Writes one of this crate's values.
#[expect(clippy::expect_used, reason = "no type of this crate refuses to be written")]
pub(crate) fn write<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("keys are strings, and no `Serialize` here fails by itself")
}
