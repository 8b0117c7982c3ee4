//! One page of calls.

use alloc::string::String;
use alloc::vec::Vec;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::Call;
use crate::json::{json_body, read_object};

/// One page of the list of calls, newest first.
///
/// A service always sends all three fields. A reader takes a page without `has_more` or
/// `next_cursor` too; what each combination means is decided where pages are walked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallList {
    /// The calls.
    pub data: Vec<Call>,
    /// What leads to the next page. Opaque: it is handed back as it came.
    pub next_cursor: Option<String>,
    /// Whether there is a next page; `None` if the answer did not say.
    pub has_more: Option<bool>,
}

impl CallList {
    /// A page, with what leads to the next one if there is one.
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

read_object!(CallList { data: required, next_cursor: nullable, has_more: nullable });
json_body!(CallList);
