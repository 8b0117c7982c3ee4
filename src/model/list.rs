//! One page of calls.

use alloc::string::String;
use alloc::vec::Vec;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::Call;
use crate::json::{json_body, json_object};

json_object! {
    /// Holds one page of the list of calls, newest first.
    ///
    /// A service sends all three fields. A page without `has_more` or `next_cursor` is read as
    /// well; the [protocol](crate::guide::protocol) says what each combination means.
    ///
    /// ```
    /// use call_assistant::model::CallList;
    ///
    /// let page = CallList::from_json(br#"{"data":[],"next_cursor":null,"has_more":false}"#)?;
    /// assert!(page.data.is_empty() && page.next_cursor.is_none());
    /// # Ok::<(), call_assistant::json::ParseError>(())
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct CallList {
        /// The calls.
        pub data: Vec<Call>,
        /// The cursor of the next page. Its text is opaque: send it back unchanged.
        pub next_cursor: Option<String>,
        /// Whether there is a next page; `None` if the response did not say.
        pub has_more: Option<bool>,
    }
}

impl CallList {
    /// Creates a page. `next_cursor` leads to the next one; the last page has none.
    #[must_use]
    pub fn new(data: Vec<Call>, next_cursor: Option<String>) -> Self {
        let has_more = Some(next_cursor.is_some());
        Self { data, next_cursor, has_more }
    }
}

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

json_body!(CallList);
