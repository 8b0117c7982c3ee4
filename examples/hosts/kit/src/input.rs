//! JSON written by people: unknown fields are refused, and errors name the path of the field,
//! `accounts[2].keys[0].expires_at: ...`. Values are not quoted: they may be secrets.

use std::fmt;

use call_assistant::json::ParseError;
use call_assistant::model::Call;
use serde_json::{Map, Value};

/// An error, with the path of its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The path of the field; empty for the whole text.
    pub field: String,
    pub message: String,
}

impl Bad {
    pub fn new(field: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { field: field.into(), message: message.to_string() }
    }

    /// Creates an error from a library type's error about a text at this path.
    pub fn of_json(path: &str, error: &ParseError) -> Self {
        let text = error.to_string();
        let inner = error.field().unwrap_or_default();
        let message = text.strip_prefix(&format!("{inner}: ")).unwrap_or(&text);
        // The line and column belong to an internal text.
        let message = message.split(" at line ").next().unwrap_or(message);
        Self::new(join(path, inner), message)
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.message),
            // A library's error names its own field: `url is not https`.
            field => match self.message.strip_prefix(field.rsplit('.').next().unwrap_or(field)) {
                Some(rest) if rest.starts_with(' ') => write!(f, "{field}{rest}"),
                _ => write!(f, "{field}: {}", self.message),
            },
        }
    }
}

impl std::error::Error for Bad {}

/// An object whose fields are all known.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    path: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// Takes an object with these fields and no others; `known` names them with `, ` in between.
    pub fn of(path: &str, value: &'a Value, known: &str) -> Result<Self, Bad> {
        let map = value.as_object().ok_or_else(|| Bad::new(path, "expected an object"))?;
        if let Some(unknown) =
            map.keys().find(|name| name.is_empty() || known.split(", ").all(|known| known != *name))
        {
            let message = match known {
                "" => "unknown field; there are none".to_owned(),
                known => format!("unknown field; the fields are {known}"),
            };
            return Err(Bad::new(join(path, repeatable(unknown)), message));
        }
        Ok(Self { path: path.to_owned(), map })
    }

    /// Returns the path of a field.
    pub fn path(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// Returns whether the field exists, null included.
    pub fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Returns a field's value; `None` if it is absent or null.
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Returns a field's text; `None` if it is absent or null.
    pub fn text(&self, name: &str) -> Result<Option<&'a str>, Bad> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| Bad::new(self.path(name), "expected a string"))?;
        Ok(Some(text))
    }

    /// Parses a field's text.
    pub fn read<T, E: fmt::Display>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Bad> {
        let read = |text| read(text).map_err(|error| Bad::new(self.path(name), error));
        self.text(name)?.map(read).transpose()
    }

    /// Requires a field.
    pub fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, Bad> {
        value.ok_or_else(|| Bad::new(self.path(name), "missing"))
    }

    /// Returns a boolean field; `None` if it is absent.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Bad> {
        match self.map.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(Bad::new(self.path(name), "expected true or false")),
        }
    }

    /// Reads a field's number; `None` if it is absent or null.
    pub fn number<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Value) -> Option<T>,
        expected: impl fmt::Display,
    ) -> Result<Option<T>, Bad> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let wrong = || Bad::new(self.path(name), format!("expected {expected}"));
        read(value).map(Some).ok_or_else(wrong)
    }

    /// Parses the text of a required field.
    pub fn need<T, E: fmt::Display>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Bad> {
        self.required(name, self.read(name, read)?)
    }

    /// Returns the items of an array field, each with its path; nothing if it is absent or null.
    pub fn items(&self, name: &str) -> Result<Vec<(String, &'a Value)>, Bad> {
        let Some(value) = self.value(name) else { return Ok(Vec::new()) };
        let path = self.path(name);
        let items = value.as_array().ok_or_else(|| Bad::new(&path, "expected an array"))?;
        Ok(items.iter().enumerate().map(|(at, item)| (format!("{path}[{at}]"), item)).collect())
    }

    /// Parses each text of an array field of at most so many; nothing if it is absent or null.
    pub fn texts<T, E: fmt::Display>(
        &self,
        name: &str,
        most: usize,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Vec<T>, Bad> {
        let items = self.items(name)?;
        if items.len() > most {
            return Err(Bad::new(self.path(name), format!("expected at most {most} items")));
        }
        let items = items.iter().map(|(path, value)| {
            let text = value.as_str().ok_or_else(|| Bad::new(path, "expected a string"))?;
            read(text).map_err(|error| Bad::new(path, error))
        });
        items.collect()
    }
}

/// Checks that no text has a NUL character: PostgreSQL stores none.
pub fn storable(value: &Value) -> Result<(), Bad> {
    match path_of_nul(value) {
        Some(path) => Err(Bad::new(path.trim_start_matches('.'), NUL)),
        None => Ok(()),
    }
}

/// The message about a NUL character.
pub(crate) const NUL: &str = "expected text without NUL characters";

fn path_of_nul(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text.contains('\0').then(String::new),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(at, item)| Some(format!("[{at}]{}", path_of_nul(item)?)))
        }
        Value::Object(map) => map.iter().find_map(|(name, value)| match name.contains('\0') {
            true => Some(String::new()),
            false => Some(format!(".{}{}", repeatable(name), path_of_nul(value)?)),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Checks a text that is shown on one line: from 1 to `most` bytes.
pub fn plain(text: &str, most: usize) -> Result<&str, String> {
    match (1..=most).contains(&text.len()) && !text.chars().any(char::is_control) {
        true => Ok(text),
        false => Err(format!("expected 1 to {most} bytes of plain text")),
    }
}

pub(crate) const CALL: &str = "id, caller, started_at, answered_at, ended_at, duration_seconds, summary, \
                    appointment_ids, created_at";

/// Reads a call, with `defaults` for the fields that are absent.
pub fn call(path: &str, value: &Value, defaults: &Map<String, Value>) -> Result<Call, Bad> {
    Fields::of(path, value, CALL)?;
    if let Some(caller) = value.get("caller") {
        Fields::of(&join(path, "caller"), caller, "contact_id, phone_number, display_name")?;
    }
    let mut whole = defaults.clone();
    whole.extend(value.as_object().cloned().unwrap_or_default());
    let text = Value::Object(whole).to_string();
    Call::from_json(text.as_bytes()).map_err(|error| Bad::of_json(path, &error))
}

/// Returns the name of a field for a message. One as long as a secret is not repeated.
fn repeatable(name: &str) -> &str {
    let is_name = name.len() <= 30 && name.bytes().all(|b| b.is_ascii_graphic());
    if is_name { name } else { "?" }
}

fn join(path: &str, name: &str) -> String {
    match (path, name) {
        ("", name) => name.to_owned(),
        (path, "") => path.to_owned(),
        (path, name) => format!("{path}.{name}"),
    }
}
