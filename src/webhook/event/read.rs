//! How a body becomes an event: the envelope, and the data that its type announces.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::data::{DataOf, EventData, EventType, OtherFields, UnreadableData};
use super::envelope::{ApiVersion, Origin};
use crate::Timestamp;
use crate::id::{AccountId, EventId};
use crate::json::{self, Name, ParseError, ParseErrorKind as Kind, Tracker};
use crate::webhook::headers::is_header_text;

/// The envelope without type and data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) id: EventId,
    pub(super) created_at: Timestamp,
    pub(super) api_version: Option<ApiVersion>,
    pub(super) account_id: AccountId,
    pub(super) origin: Option<Origin>,
}

/// Reads an event. What does not fit is kept with its reason, provided that the head is readable.
pub(super) fn event(bytes: &[u8]) -> Result<(Head, EventData, OtherFields), ParseError> {
    if let Ok(event) = typed(bytes, None) {
        return Ok(event);
    }
    let (head, event_type, data) = head(bytes)?;
    // With the type known in advance, data fails at its place in the body, whatever the order of
    // the fields. That is the place to report.
    typed(bytes, Some(&event_type)).or_else(|error| {
        let envelope = json::read(bytes)?;
        let data = UnreadableData::new(event_type, data, envelope, error);
        Ok((head, EventData::Unreadable(data), OtherFields::default()))
    })
}

/// Reads the head, and keeps the data as text.
#[expect(clippy::expect_used, reason = "fields that keep the data as text have read it as text")]
pub(super) fn head(bytes: &[u8]) -> Result<(Head, EventType, &RawValue), ParseError> {
    let Envelope { head, event_type, data } = envelope(bytes, Fields::Head)?;
    Ok((head, event_type, data.text().expect("the data was kept as text")))
}

/// Reads the head of a body that is to be sent: its type must be text that a header can carry.
pub(super) fn head_to_send(bytes: &[u8]) -> Result<(Head, EventType), ParseError> {
    let Envelope { head, event_type, .. } = envelope(bytes, Fields::HeadToSend)?;
    Ok((head, event_type))
}

/// Reads an event in one pass if its type comes before its data, or is known from an earlier pass;
/// otherwise the data waits as text.
fn typed(
    bytes: &[u8],
    as_type: Option<&EventType>,
) -> Result<(Head, EventData, OtherFields), ParseError> {
    json::read_with(bytes, |from, tracker| {
        tracker.expect("an object");
        let reader = EnvelopeReader { fields: Fields::All(as_type), tracker };
        let Envelope { head, event_type, data } = from.deserialize_map(reader)?;
        let (data, others) = match data {
            Data::Typed(data, others) => (data, others),
            Data::Text(text) => {
                let mut text = serde_json::Deserializer::from_str(text.get());
                DataOf(&event_type, tracker).deserialize(&mut text)?
            }
        };
        Ok((head, data, others))
    })
}

/// Which fields of the envelope must fit.
#[derive(Clone, Copy)]
enum Fields<'t> {
    /// All, the data as this type has it or as the envelope's own.
    All(Option<&'t EventType>),
    /// Those without which there is no event. The data stays text.
    Head,
    /// The same, the type being text that a header can carry.
    HeadToSend,
}

impl Fields<'_> {
    /// Reads the next field's name, on the first pass as text: that is faster. A name that no text
    /// can hold leads to another pass.
    fn next_name<'de, A: MapAccess<'de>>(
        self,
        map: &mut A,
    ) -> Result<Option<Cow<'de, str>>, A::Error> {
        Ok(match self {
            Self::All(None) => map.next_key()?.map(|Name(name)| name),
            _ => map.next_key()?.map(field_name),
        })
    }
}

struct Envelope<'de> {
    head: Head,
    event_type: EventType,
    data: Data<'de>,
}

#[expect(clippy::large_enum_variant, reason = "there is one at a time, and none is stored")]
enum Data<'de> {
    Typed(EventData, OtherFields),
    Text(&'de RawValue),
}

impl<'de> Data<'de> {
    fn text(&self) -> Option<&'de RawValue> {
        match self {
            Self::Text(text) => Some(text),
            Self::Typed(..) => None,
        }
    }
}

/// Reads these fields of an envelope.
struct EnvelopeReader<'t, 'de> {
    fields: Fields<'t>,
    tracker: &'t Tracker<'de>,
}

fn envelope<'de>(bytes: &'de [u8], fields: Fields<'_>) -> Result<Envelope<'de>, ParseError> {
    json::read_with(bytes, |from, tracker| {
        tracker.expect("an object");
        from.deserialize_map(EnvelopeReader { fields, tracker })
    })
}

impl<'de> Visitor<'de> for EnvelopeReader<'_, 'de> {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
        let mut id = None;
        let mut event_type = None;
        let mut created_at = None;
        let mut api_version = None;
        let mut account_id = None;
        let mut origin = None;
        let mut data = None;
        let Self { fields, tracker } = self;
        tracker.enter();
        while let Some(name) = fields.next_name(&mut map)? {
            tracker.field(match name {
                Cow::Borrowed(name) => name,
                Cow::Owned(_) => "?",
            });
            match (&*name, fields) {
                ("id", _) => tracker.once(&mut id, &mut map)?,
                ("type", fields) => {
                    tracker.once(&mut event_type, &mut map)?;
                    let text = event_type.as_ref().map_or("", EventType::as_str);
                    if matches!(fields, Fields::HeadToSend) && !is_header_text(text) {
                        return Err(tracker.reject(Kind::Value, "expected visible ASCII"));
                    }
                }
                ("created_at", _) => tracker.once(&mut created_at, &mut map)?,
                ("account_id", _) => tracker.once(&mut account_id, &mut map)?,
                ("api_version", Fields::All(_)) => tracker.once(&mut api_version, &mut map)?,
                ("api_version", _) => api_version = readable(&mut map)?,
                ("origin", Fields::All(_)) => tracker.once(&mut origin, &mut map)?,
                ("origin", _) => origin = readable(&mut map)?,
                ("data", _) if data.is_some() => {
                    return Err(tracker.reject(Kind::Duplicate, "given twice"));
                }
                ("data", fields) => {
                    let known = match fields {
                        Fields::All(known) => known.or(event_type.as_ref()),
                        Fields::Head | Fields::HeadToSend => None,
                    };
                    data = Some(match known {
                        Some(event_type) => {
                            let (data, others) =
                                map.next_value_seed(DataOf(event_type, tracker))?;
                            Data::Typed(data, others)
                        }
                        None => Data::Text(map.next_value()?),
                    });
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if api_version.is_none() && matches!(fields, Fields::All(_)) {
            return Err(tracker.missing("api_version"));
        }
        let envelope = Envelope {
            head: Head {
                id: tracker.value(id, "id")?,
                created_at: tracker.value(created_at, "created_at")?,
                api_version,
                account_id: tracker.value(account_id, "account_id")?,
                origin: origin.flatten(),
            },
            event_type: tracker.value(event_type, "type")?,
            data: data.ok_or_else(|| tracker.missing("data"))?,
        };
        tracker.leave();
        Ok(envelope)
    }
}

/// A field's name. One that no text can hold, such as half a surrogate pair, is no field of ours.
fn field_name(name: &RawValue) -> Cow<'_, str> {
    let quoted = name.get();
    match quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) if !text.contains('\\') => text.into(),
        _ => serde_json::from_str::<String>(quoted).unwrap_or_default().into(),
    }
}

/// Reads a field if it fits.
fn readable<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    map: &mut A,
) -> Result<Option<T>, A::Error> {
    let text: &RawValue = map.next_value()?;
    Ok(serde_json::from_str(text.get()).ok())
}
