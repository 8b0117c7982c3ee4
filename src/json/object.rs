//! A JSON object whose fields the specification does not give.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{ParseError, read};

/// A JSON object kept as the text it came as.
///
/// Where the specification says that an object exists but not what is in it, this holds it:
/// numbers keep their digits, names their order, and what is written back is what was read. Look
/// a field up with [`get`](Self::get), or hand [`as_str`](Self::as_str) to a type of your own.
///
/// ```
/// use call_assistant::json::JsonObject;
///
/// let object = JsonObject::parse(r#"{"minutes_used": 75.00, "plan": {"minutes": 1e2}}"#)?;
/// assert_eq!(object.get("minutes_used").unwrap().get(), "75.00");
/// # Ok::<(), call_assistant::json::ParseError>(())
/// ```
#[derive(Clone)]
pub struct JsonObject(Box<RawValue>);

impl JsonObject {
    /// Reads an object.
    ///
    /// # Errors
    /// The text is not JSON, or not an object.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        read(text.as_bytes())
    }

    /// The text as it came, without blanks around it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The value of a field. Of a field given twice, the last.
    ///
    /// `None` where there is no such field, and in an object with a name that is JSON but no
    /// text, such as half a surrogate pair.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        let mut found = None;
        each_field(self.as_str(), |key, value| {
            if key == name {
                found = Some(value);
            }
        })?;
        found
    }

    /// The string in a field, if there is one.
    #[must_use]
    pub fn get_str(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// The same object with one field set to a string: in its place if it was there, at the end
    /// if not. The values of all other fields stay as they are, to the letter.
    ///
    /// `None` for an object with a name that is no text, as for [`get`](Self::get).
    #[must_use]
    pub fn with_str(&self, name: &str, text: &str) -> Option<Self> {
        let text = serde_json::value::to_raw_value(text).ok()?;
        let mut fields = fields(self.as_str())?;
        match fields.iter().position(|(key, _)| key == name) {
            Some(first) => {
                let mut index = 0..;
                fields.retain(|(key, _)| index.next() == Some(first) || key != name);
                if let Some((_, value)) = fields.get_mut(first) {
                    *value = &text;
                }
            }
            None => fields.push((Cow::Borrowed(name), &text)),
        }
        serde_json::value::to_raw_value(&Fields(&fields)).ok().map(Self)
    }
}

/// The fields of an object, in order, those of the same name included.
pub(crate) fn fields(object: &str) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    let mut fields = Vec::new();
    each_field(object, |name, value| fields.push((name, value)))?;
    Some(fields)
}

/// Calls with each name and value in turn. `None` once a name is no text.
fn each_field<'s>(object: &'s str, field: impl FnMut(Cow<'s, str>, &'s RawValue)) -> Option<()> {
    struct Entries<F>(F);
    impl<'de, F: FnMut(Cow<'de, str>, &'de RawValue)> Visitor<'de> for Entries<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((Text(name), value)) = map.next_entry()? {
                (self.0)(name, value);
            }
            Ok(())
        }
    }
    serde_json::Deserializer::from_str(object).deserialize_map(Entries(field)).ok()
}

impl PartialEq for JsonObject {
    /// The same text.
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for JsonObject {}

impl fmt::Debug for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for JsonObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        if text.get().starts_with('{') {
            Ok(Self(text))
        } else {
            Err(D::Error::custom("expected an object"))
        }
    }
}

/// Text borrowed where no escape stands in it: serde would make a `String` of every name.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

struct Fields<'s, 'a>(&'s [(Cow<'a, str>, &'a RawValue)]);

impl Serialize for Fields<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
