//! JSON that is kept as its original text.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::DeserializeOwned;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{FromJson, Name, ParseError, ParseErrorKind, Tracker, deserialize, read};

/// A JSON object that is kept as its original text.
///
/// This type is for objects whose fields the [protocol](crate::guide::protocol) does not define.
/// Numbers keep their digits, fields keep their order, and the object is written as it was read.
/// Read a field with [`get`](Self::get), or parse the text of [`as_str`](Self::as_str) into your
/// own type.
///
/// ```
/// use call_assistant::json::JsonObject;
///
/// let object = JsonObject::parse(r#"{"minutes_used": 75.00, "plan": {"minutes": 1e2}}"#)?;
/// assert_eq!(object.get("minutes_used").unwrap().get(), "75.00");
/// assert_eq!(object.get_str("plan"), None);
/// # Ok::<(), call_assistant::json::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct JsonObject(RawJson);

impl JsonObject {
    /// Reads an object.
    ///
    /// # Errors
    /// Returns an error if the text is not JSON, or not an object.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        read(text.as_bytes())
    }

    /// Returns the original text, without spaces around it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.0.get()
    }

    /// Returns the value of a field. If the field is given several times, returns the last value.
    ///
    /// A field whose name is not Unicode text (`"\ud800"` is valid JSON) cannot be read by name,
    /// but stays in [`as_str`](Self::as_str). All other fields can be read.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        let mut found = None;
        each_field(self.as_str(), |key, value| {
            if is_named(key, name) {
                found = Some(value);
            }
        });
        found
    }

    /// Returns the text of a field, if the field's value is a string that is Unicode text.
    #[must_use]
    pub fn get_str(&self, name: &str) -> Option<String> {
        self.get_as(name)
    }

    /// Returns the value of a field, if the value can be read as a `T`.
    pub(crate) fn get_as<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// Returns the object with one field set to a string. An existing field keeps its place. A new
    /// field is added at the end. The text of all other names and values stays unchanged.
    #[must_use]
    #[expect(clippy::expect_used, reason = "it is made of the parts of an object")]
    pub(crate) fn with_str(&self, name: &str, text: &str) -> Self {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let changed = alloc::format!("{}:{}", quoted(name), quoted(text));
        let mut changed = Some(changed);
        let mut members = Vec::new();
        each_field(self.as_str(), |key, value| {
            if is_named(key, name) {
                members.extend(changed.take());
            } else {
                members.push(alloc::format!("{}:{}", key.get(), value.get()));
            }
        });
        members.extend(changed);
        let object = RawValue::from_string(alloc::format!("{{{}}}", members.join(",")));
        Self(RawJson(object.expect("names and values joined by colons and commas are an object")))
    }
}

impl fmt::Debug for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> FromJson<'de> for JsonObject {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        let json = RawJson::read(from, tracker)?;
        if json.0.get().starts_with('{') {
            Ok(Self(json))
        } else {
            Err(tracker.reject(ParseErrorKind::Value, "expected an object"))
        }
    }
}

deserialize!(JsonObject);

/// Any JSON value, as its original text. Two values are equal if their texts are equal.
#[derive(Clone, Serialize)]
#[serde(transparent)]
pub(crate) struct RawJson(pub(crate) Box<RawValue>);

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for RawJson {}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get())
    }
}

impl<'de> FromJson<'de> for RawJson {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        tracker.expect("a value");
        Box::deserialize(from).map(Self)
    }
}

/// Returns the fields of an object in order, including repeated fields. Names are JSON strings,
/// which need not be Unicode text.
#[cfg(feature = "explain")]
pub(crate) fn fields(object: &str) -> Vec<(&RawValue, &RawValue)> {
    let mut fields = Vec::new();
    each_field(object, |name, value| fields.push((name, value)));
    fields
}

#[expect(clippy::expect_used, reason = "the text was read as an object before")]
fn each_field<'s>(object: &'s str, field: impl FnMut(&'s RawValue, &'s RawValue)) {
    struct Entries<F>(F);

    impl<'de, F: FnMut(&'de RawValue, &'de RawValue)> Visitor<'de> for Entries<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((name, value)) = map.next_entry()? {
                (self.0)(name, value);
            }
            Ok(())
        }
    }

    serde_json::Deserializer::from_str(object)
        .deserialize_map(Entries(field))
        .expect("a JSON object");
}

fn is_named(key: &RawValue, name: &str) -> bool {
    serde_json::from_str::<Name<'_>>(key.get()).is_ok_and(|key| key.0 == name)
}
