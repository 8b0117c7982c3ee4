//! One page of calls.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::ser::SerializeStruct;
use serde::{Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::Call;
use crate::Timestamp;
use crate::id::CallId;
use crate::json::{
    self, FromJson, JsonObject, ParseError, ParseErrorKind, RawJson, Tracker, deserialize,
    json_object, read_items,
};

/// A page of the list of calls, newest first.
///
/// ```
/// use call_assistant::model::{CallList, ListedCall};
///
/// let page = CallList::from_json(br#"{"data":[{"id":"call_1","summary":"\ud83d"}]}"#)?;
/// for item in &page.data {
///     match item {
///         ListedCall::Call(call) => println!("{} {:?}", call.id, call.summary),
///         ListedCall::Unreadable(item) => println!("{:?}: {}", item.id(), item.error()),
///     }
/// }
/// # assert_eq!(page.calls().count(), 0);
/// # assert_eq!(page.unreadable().next().unwrap().id().unwrap().as_str(), "call_1");
/// # Ok::<(), call_assistant::json::ParseError>(())
/// ```
///
/// **Each item is read by itself.** An item that cannot be read is kept unchanged, together with
/// the reason, as a [`ListedCall`]. The rest of the page stays readable.
///
/// A service sends all three fields of a page. A reader also accepts a page without `has_more` or
/// `next_cursor`. The [protocol](crate::guide::protocol) defines the meaning of each combination of
/// the fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallList {
    /// The calls, and the items that cannot be read as a call.
    pub data: Vec<ListedCall>,
    /// The cursor of the next page. The cursor is opaque. Send the cursor back unchanged.
    pub next_cursor: Option<String>,
    /// Whether there is a next page. If the response has no value for this field, the field is
    /// `None`.
    pub has_more: Option<bool>,
}

/// An item of a [`CallList`].
///
/// Closed: a program that handles both variants skips no call silently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedCall {
    /// A call.
    Call(Call),
    /// An item that cannot be read as a call, for example because a text has half of a surrogate
    /// pair, or because a field has a wrong type. Store the item, and report it.
    Unreadable(UnreadableCall),
}

/// An item of a list that cannot be read as a [`Call`], kept as received.
///
/// ```
/// use call_assistant::model::CallList;
///
/// let page = CallList::from_json(br#"{"data":[{"id":"call_1","started_at":"yesterday"}]}"#)?;
/// let item = page.unreadable().next().unwrap();
/// assert_eq!(item.id().unwrap().as_str(), "call_1");
/// assert_eq!(item.json().get(), r#"{"id":"call_1","started_at":"yesterday"}"#);
/// assert_eq!(item.error().field(), Some("started_at"));
/// # Ok::<(), call_assistant::json::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct UnreadableCall {
    id: Option<CallId>,
    created_at: Option<Timestamp>,
    json: RawJson,
    error: ParseError,
}

impl CallList {
    /// The maximum number of unreadable items in a page: 100. A text with more than 100 unreadable
    /// items is rejected.
    const MAX_UNREADABLE: usize = 100;

    /// Creates a page. `next_cursor` is the cursor of the next page, or `None` on the last page.
    #[must_use]
    pub fn new(calls: Vec<Call>, next_cursor: Option<String>) -> Self {
        let has_more = Some(next_cursor.is_some());
        Self { data: calls.into_iter().map(ListedCall::Call).collect(), next_cursor, has_more }
    }

    /// Returns the calls that can be read.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.data.iter().filter_map(|item| match item {
            ListedCall::Call(call) => Some(call),
            ListedCall::Unreadable(_) => None,
        })
    }

    /// Returns the items that cannot be read.
    pub fn unreadable(&self) -> impl Iterator<Item = &UnreadableCall> {
        self.data.iter().filter_map(|item| match item {
            ListedCall::Call(_) => None,
            ListedCall::Unreadable(item) => Some(item),
        })
    }

    /// Reads a page from JSON, by the rules in [`json`](crate::json), each item by itself.
    ///
    /// # Errors
    /// Returns the fault of the page and its position, but not the received value.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ParseError> {
        // Nearly every page is without fault, and twice as fast to read as a whole.
        match json::read::<Faultless>(bytes) {
            Ok(Faultless { data, next_cursor, has_more }) => {
                Ok(Self { has_more, ..Self::new(data, next_cursor) })
            }
            Err(error) => match error.kind() {
                ParseErrorKind::TooLong | ParseErrorKind::NotUtf8 | ParseErrorKind::Truncated => {
                    Err(error)
                }
                _ => json::read(bytes),
            },
        }
    }

    /// Writes the page as JSON, without spaces. Unreadable items are written as received.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl UnreadableCall {
    /// Returns the item's id, if the id is readable.
    #[must_use]
    pub fn id(&self) -> Option<&CallId> {
        self.id.as_ref()
    }

    /// Returns the item's `created_at`, if this time is readable.
    #[must_use]
    pub fn created_at(&self) -> Option<Timestamp> {
        self.created_at
    }

    /// Returns the item as received.
    #[must_use]
    pub fn json(&self) -> &RawValue {
        &self.json.0
    }

    /// Returns the fault, with its field, line and column relative to the item.
    #[must_use]
    pub fn error(&self) -> &ParseError {
        &self.error
    }
}

/// Shows the id, the length and the error. Omits the text, which is about people and can have any
/// length.
impl fmt::Debug for UnreadableCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnreadableCall")
            .field("id", &self.id)
            .field("json", &format_args!("{} bytes", self.json.0.get().len()))
            .field("error", &self.error)
            .finish()
    }
}

impl From<Call> for ListedCall {
    fn from(call: Call) -> Self {
        Self::Call(call)
    }
}

impl Serialize for ListedCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Call(call) => call.serialize(serializer),
            Self::Unreadable(item) => item.serialize(serializer),
        }
    }
}

impl Serialize for UnreadableCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de> FromJson<'de> for ListedCall {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        let json = RawJson::read(from, tracker)?;
        Ok(match Call::from_json(json.0.get().as_bytes()) {
            Ok(call) => Self::Call(call),
            Err(error) => {
                let item = JsonObject::parse(json.0.get()).ok();
                let item = item.as_ref();
                Self::Unreadable(UnreadableCall {
                    id: item.and_then(|item| item.get_as("id")),
                    created_at: item.and_then(|item| item.get_as("created_at")),
                    json,
                    error,
                })
            }
        })
    }
}

deserialize!(ListedCall);

impl Serialize for CallList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_struct("CallList", 3)?;
        list.serialize_field("data", &self.data)?;
        list.serialize_field("next_cursor", &self.next_cursor)?;
        // Never null: a page read without it is written with what its cursor says (D-21, D-24).
        let has_more = self.has_more.unwrap_or(self.next_cursor.is_some());
        list.serialize_field("has_more", &has_more)?;
        list.end()
    }
}

impl<'de> FromJson<'de> for CallList {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        let ItemByItem { data, next_cursor, has_more } = ItemByItem::read(from, tracker)?;
        Ok(Self { data: data.0, next_cursor, has_more })
    }
}

deserialize!(CallList);

json_object! {
    /// A page whose items are all calls.
    struct Faultless {
        data: Vec<Call>,
        next_cursor: Option<String>,
        has_more: Option<bool>,
    }
}

json_object! {
    /// A page whose items are read separately.
    struct ItemByItem {
        data: Items,
        next_cursor: Option<String>,
        has_more: Option<bool>,
    }
}

struct Items(Vec<ListedCall>);

impl<'de> FromJson<'de> for Items {
    fn read<D: Deserializer<'de>>(from: D, tracker: &Tracker<'de>) -> Result<Self, D::Error> {
        let mut unreadable = 0..CallList::MAX_UNREADABLE;
        let items = read_items(from, tracker, |item| match item {
            ListedCall::Unreadable(_) if unreadable.next().is_none() => {
                Err("more unreadable items than a page has calls")
            }
            _ => Ok(()),
        });
        items.map(Self)
    }
}
