//! An event, and how a body becomes one.

use alloc::vec::Vec;
use core::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::data::{Beside, DataOf, EventData, EventType, UnreadableData, WrittenData};
use super::envelope::{ApiVersion, Origin};
use crate::Timestamp;
use crate::id::{AccountId, EventId};
use crate::json::{self, ParseError};
use crate::time;
use crate::webhook::{DeliveryHeader, Verified, WebhookResponse};

/// One event as it was read.
///
/// There are two ways to one: [`Verified::event`], and, for bodies that were verified before they
/// were queued, [`from_bytes_verified_earlier`](Self::from_bytes_verified_earlier).
///
/// Deliveries come at least once and in any order. Store [`id`](Self::id) before acting on an
/// event, pass over one that is stored already, and order by the times inside the objects.
///
/// No third way compiles:
///
/// ```compile_fail,E0277
/// use call_assistant::webhook::event::Event;
///
/// let event: Event = serde_json::from_str(r#"{"id":"evt_1"}"#).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Which event: the same in every attempt and at every endpoint. Deduplicate on it, together
    /// with [`account_id`](Self::account_id).
    pub id: EventId,
    /// When the event was made.
    pub created_at: Timestamp,
    /// In terms of which version of the API it is written.
    pub api_version: ApiVersion,
    /// Whose event it is.
    pub account_id: AccountId,
    /// Where the change came from. Older events that are delivered again may not say.
    pub origin: Option<Origin>,
    /// What it is about.
    pub data: EventData,
    beside: Beside,
}

impl Event {
    /// Reads a body **that was verified when it came in** and was stored or queued since. Nothing
    /// is verified here: given bytes from anywhere else, this makes an event of what anybody sent.
    ///
    /// # Errors
    /// The body is not an envelope: what is wrong, in which field, at which line and column. Data
    /// that does not fit its type is not an error, see [`EventData::Unreadable`].
    pub fn from_bytes_verified_earlier(bytes: &[u8]) -> Result<Self, ParseError> {
        read(bytes)
    }

    /// The type, which is [`data`](Self::data)'s.
    #[must_use]
    pub fn event_type(&self) -> &EventType {
        self.data.event_type()
    }

    /// What stands in `data` beside the field that is typed, which is `object`, or `message` for a
    /// ping. Where all of `data` is kept in one piece, there is nothing beside it.
    pub fn beside_data(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.beside.iter()
    }

    /// Writes the event anew. It says what was read, but these are not the bytes that were signed:
    /// to store or to pass on a delivery, keep [`Verified::bytes`].
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        json::write(&Written {
            id: &self.id,
            event_type: self.event_type(),
            created_at: self.created_at,
            api_version: self.api_version,
            account_id: &self.account_id,
            origin: self.origin.as_ref(),
            data: WrittenData(&self.data, &self.beside),
        })
    }

    pub(super) fn new(head: Head, data: EventData) -> Self {
        Self::assemble(head, (data, Beside::default()))
    }

    fn assemble(head: Head, (data, beside): (EventData, Beside)) -> Self {
        let Head { id, created_at, api_version, account_id, origin } = head;
        Self { id, created_at, api_version, account_id, origin, data, beside }
    }
}

impl Verified<'_> {
    /// Reads the event, whose type and id are those of the body: the headers are not signed, and
    /// only have to agree.
    ///
    /// # Errors
    /// The body is not an event, or a header contradicts it. Either way the body remains what it
    /// was proven to be, so nothing need be lost: see [`EventError`].
    pub fn event(&self) -> Result<Event, EventError> {
        let event = read(self.bytes())?;
        let claims = [
            (DeliveryHeader::Event, event.event_type().as_str()),
            (DeliveryHeader::Delivery, event.id.as_str()),
        ];
        for (header, ours) in claims {
            if self.headers().value(header).is_some_and(|theirs| theirs != ours.as_bytes()) {
                return Err(EventError::Contradiction { header });
            }
        }
        Ok(event)
    }
}

/// Why a verified body does not give an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The body is genuine, but not an envelope as this version knows it. Keep the bytes; sent
    /// again, they will be the same.
    #[error(transparent)]
    Malformed(#[from] ParseError),
    /// The body is genuine, but an unsigned header beside it says something else. Somebody may be
    /// replaying a body with headers of their own, or a proxy is at fault; to go on regardless,
    /// read the bytes with [`Event::from_bytes_verified_earlier`].
    #[error("{header} header contradicts the body")]
    Contradiction {
        /// Which header.
        header: DeliveryHeader,
    },
}

impl EventError {
    /// What to answer: 204 to a body that no further attempt will make readable, since twenty
    /// failed deliveries in a row disable the endpoint; 400 to a contradiction.
    ///
    /// After a 204 the service does not send it again: [keep the bytes](Verified::bytes) first, for
    /// a version of this crate or a person that can read them.
    #[must_use]
    pub fn receipt(&self) -> WebhookResponse {
        match self {
            Self::Malformed(_) => WebhookResponse::Ignored,
            Self::Contradiction { .. } => WebhookResponse::Refused,
        }
    }
}

/// The envelope without type and data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) id: EventId,
    pub(super) created_at: Timestamp,
    pub(super) api_version: ApiVersion,
    pub(super) account_id: AccountId,
    pub(super) origin: Option<Origin>,
}

#[derive(Serialize)]
struct Written<'a> {
    id: &'a EventId,
    #[serde(rename = "type")]
    event_type: &'a EventType,
    #[serde(with = "time::offset")]
    created_at: Timestamp,
    api_version: ApiVersion,
    account_id: &'a AccountId,
    origin: Option<&'a Origin>,
    data: WrittenData<'a>,
}

/// Reads the envelope, and the data on the way if its type is known by then.
///
/// Data that fails on the way stops the reader in the middle of an envelope that may be sound, so
/// whatever fails is read once more with the data left as it is.
fn read(bytes: &[u8]) -> Result<Event, ParseError> {
    let error = match json::read_with(bytes, Typed { as_type: None }) {
        Ok(event) => return Ok(event),
        Err(error) => error,
    };
    if !bytes.trim_ascii_start().starts_with(b"{") {
        // `Whole` would take an array of its fields in order.
        return Err(error);
    }
    let Whole { id, event_type, created_at, api_version, account_id, origin, data } =
        json::read(bytes)?;
    // Now that the type is known beforehand, data fails where it stands in the body, whatever the
    // order of the fields.
    json::read_with(bytes, Typed { as_type: Some(&event_type) }).or_else(|error| {
        let drifted = UnreadableData::new(event_type.clone(), data, error);
        let head = Head { id, created_at, api_version, account_id, origin };
        Ok(Event::new(head, EventData::Unreadable(drifted)))
    })
}

/// An envelope whose data does not fit, or which is none.
#[derive(Deserialize)]
struct Whole<'a> {
    id: EventId,
    #[serde(rename = "type")]
    event_type: EventType,
    created_at: Timestamp,
    api_version: ApiVersion,
    account_id: AccountId,
    origin: Option<Origin>,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Reads an event in one pass, whatever the order of its fields: data that comes before the type
/// waits as text.
struct Typed<'t> {
    /// The type, if it is known from an earlier pass.
    as_type: Option<&'t EventType>,
}

impl<'de> DeserializeSeed<'de> for Typed<'_> {
    type Value = Event;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Event, D::Error> {
        from.deserialize_map(self)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    Id,
    Type,
    CreatedAt,
    ApiVersion,
    AccountId,
    Origin,
    Data,
    #[serde(other)]
    Unknown,
}

impl<'de> Visitor<'de> for Typed<'_> {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
        let mut id = None;
        let mut event_type = None;
        let mut created_at = None;
        let mut api_version = None;
        let mut account_id = None;
        let mut origin = None;
        let mut data = None;
        let mut waiting: Option<&'de RawValue> = None;
        while let Some(field) = map.next_key()? {
            match field {
                Field::Id => once(&mut id, "id", &mut map)?,
                Field::Type => once(&mut event_type, "type", &mut map)?,
                Field::CreatedAt => once(&mut created_at, "created_at", &mut map)?,
                Field::ApiVersion => once(&mut api_version, "api_version", &mut map)?,
                Field::AccountId => once(&mut account_id, "account_id", &mut map)?,
                Field::Origin => once(&mut origin, "origin", &mut map)?,
                Field::Data if data.is_some() => return Err(A::Error::duplicate_field("data")),
                Field::Data => match self.as_type.or(event_type.as_ref()) {
                    Some(event_type) => data = Some(map.next_value_seed(DataOf(event_type))?),
                    None => once(&mut waiting, "data", &mut map)?,
                },
                Field::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let event_type = event_type.ok_or_else(|| A::Error::missing_field("type"))?;
        if let Some(text) = waiting {
            if data.is_some() {
                return Err(A::Error::duplicate_field("data"));
            }
            let mut text = serde_json::Deserializer::from_str(text.get());
            data = Some(DataOf(&event_type).deserialize(&mut text).map_err(A::Error::custom)?);
        }
        let head = Head {
            id: id.ok_or_else(|| A::Error::missing_field("id"))?,
            created_at: created_at.ok_or_else(|| A::Error::missing_field("created_at"))?,
            api_version: api_version.ok_or_else(|| A::Error::missing_field("api_version"))?,
            account_id: account_id.ok_or_else(|| A::Error::missing_field("account_id"))?,
            origin: origin.unwrap_or_default(),
        };
        Ok(Event::assemble(head, data.ok_or_else(|| A::Error::missing_field("data"))?))
    }
}

/// Reads a field that may stand there once.
fn once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    field: &mut Option<T>,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    if field.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *field = Some(map.next_value()?);
    Ok(())
}
