//! An event, and the reading of a verified body.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;

use serde::Serialize;
use serde::de::{Error, MapAccess};

use super::data::{DataOf, EventData, EventType, OtherFields, RawEventData, WrittenData};
use super::envelope::{ApiVersion, Origin};
use super::required_fields::{RequiredFields, required_fields};
use crate::Timestamp;
use crate::id::{AccountId, EventId};
use crate::json::{
    self, JsonObject, Names, ParseError, ParseErrorKind, RawJson, ReadObject, Tracker, json_object,
    read_object,
};
use crate::time;
use crate::webhook::headers::DeliveryHeader;
use crate::webhook::verifier::Verified;

/// An event that was read.
///
/// ```
/// use call_assistant::webhook::event::{Event, EventData};
///
/// let queued = br#"{"id":"evt_1","type":"ping","created_at":"2026-01-01T00:00:00+00:00",
///     "api_version":"2026-01-15","account_id":"acct_1","origin":null,"data":{"message":"hi"}}"#;
/// let event = Event::from_bytes_verified_earlier(queued)?;
/// assert_eq!((event.id.as_str(), event.event_type().as_str()), ("evt_1", "ping"));
/// assert!(matches!(event.data, EventData::Ping { message, .. } if message == "hi"));
/// # Ok::<(), call_assistant::json::ParseError>(())
/// ```
///
/// Two functions read an event. [`Verified::event`] reads a delivery.
/// [`from_bytes_verified_earlier`](Self::from_bytes_verified_earlier) reads a body that was
/// verified before the body was queued. Code that reads an event with serde does not compile:
///
/// ```compile_fail,E0277
/// use call_assistant::webhook::event::Event;
///
/// let event: Event = serde_json::from_str(r#"{"id":"evt_1"}"#).unwrap();
/// ```
///
/// Serde cannot write an event either. Store the signed bytes of the delivery, or the result of
/// [`to_json`](Self::to_json).
///
/// Each event arrives at least once, and different events arrive in any order. Before you act on an
/// event, store its [`id`](Self::id). If the id is stored already, ignore the event. Order events
/// by the times inside their objects.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The id of the event, which is the same in every attempt and at every endpoint. Deduplicate
    /// by this id and [`account_id`](Self::account_id).
    pub id: EventId,
    /// The time at which the event was created.
    pub created_at: Timestamp,
    /// The version of the API that the event follows. This field is `None` only if the version is
    /// unreadable. The data is then [`EventData::Unreadable`].
    pub api_version: Option<ApiVersion>,
    /// The account that the event belongs to.
    pub account_id: AccountId,
    /// The origin of the reported change. In old events that are delivered again, the value may be
    /// `None`. If the origin is unreadable, the value is `None` and the data is
    /// [`EventData::Unreadable`].
    pub origin: Option<Origin>,
    /// The data of the event, in the form of the event's type.
    pub data: EventData,
    pub(super) others: OtherFields,
}

impl Event {
    /// Reads a body **that was verified when it arrived** and was then stored or queued.
    ///
    /// This function does not verify the body: it also reads bytes that the service did not send.
    ///
    /// # Errors
    /// Returns an error if the body is not a JSON object, or lacks a readable `id`, `type`,
    /// `created_at`, `account_id` or `data`. The error reports the first fault with its field, line
    /// and column. An id that does not begin with `evt_` is not readable. If the body has any other
    /// fault, the function returns an event with [`EventData::Unreadable`].
    pub fn from_bytes_verified_earlier(bytes: &[u8]) -> Result<Self, ParseError> {
        // The service writes the type before the data, so that one pass suffices.
        if let Ok(event) = whole(bytes, None) {
            return Ok(event);
        }
        let RequiredFields { id, r#type, created_at, account_id, data } = required_fields(bytes)?;
        // With the type known, data fails at its place in the body, whatever the order of fields.
        whole(bytes, Some(r#type.clone())).or_else(|error| {
            let envelope: JsonObject = json::read(bytes)?;
            Ok(Self {
                id,
                created_at,
                api_version: envelope.get_as("api_version"),
                account_id,
                origin: envelope.get_as("origin"),
                data: EventData::Unreadable {
                    data: RawEventData {
                        event_type: r#type,
                        data: RawJson(data.to_owned()),
                        envelope: Some(envelope),
                    },
                    error,
                },
                others: OtherFields::default(),
            })
        })
    }

    /// Returns the event's type, which is the type of [`data`](Self::data).
    #[must_use]
    pub fn event_type(&self) -> &EventType {
        self.data.event_type()
    }

    /// Writes the event as JSON. The JSON has the content of the received body, but may differ from
    /// the signed bytes.
    ///
    /// To store or forward a delivery, keep [`Verified::bytes`]. If the data is unreadable, this
    /// function writes the event as received.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        if let EventData::Unreadable { data: RawEventData { envelope: Some(whole), .. }, .. } =
            &self.data
        {
            return whole.as_str().into();
        }
        json::write(&Written {
            id: &self.id,
            event_type: self.event_type(),
            created_at: self.created_at,
            api_version: self.api_version,
            account_id: &self.account_id,
            origin: self.origin.as_ref(),
            data: WrittenData(&self.data, &self.others),
        })
    }
}

/// Reads an event in one pass, with the data in the form of the type `known`. If `known` is `None`,
/// the body's `type` must precede the `data`.
fn whole(bytes: &[u8], known: Option<EventType>) -> Result<Event, ParseError> {
    // Names that no text can hold lead to a second pass, which is slower.
    let names = if known.is_some() { Names::Any } else { Names::Text };
    let fields = EventFields { known, ..EventFields::default() };
    json::read_with(bytes, |from, tracker| read_object(from, tracker, fields, names))
}

json_object! {
    /// The envelope without its data.
    struct Envelope {
        id: EventId,
        #[expect(dead_code, reason = "it is that of the data")]
        r#type: EventType,
        created_at: Timestamp,
        api_version: ApiVersion,
        account_id: AccountId,
        origin: Option<Origin>,
    }
}

#[derive(Default)]
pub(crate) struct EventFields {
    known: Option<EventType>,
    envelope: <Envelope as ReadObject<'static>>::Fields,
    data: Option<(EventData, OtherFields)>,
}

impl<'de> ReadObject<'de> for Event {
    type Fields = EventFields;

    fn read_field<A: MapAccess<'de>>(
        fields: &mut EventFields,
        name: &str,
        map: &mut A,
        tracker: &Tracker<'de>,
    ) -> Result<bool, A::Error> {
        if name != "data" {
            return Envelope::read_field(&mut fields.envelope, name, map, tracker);
        }
        let Some(event_type) = fields.known.as_ref().or(fields.envelope.r#type.as_ref()) else {
            return Err(tracker.reject(ParseErrorKind::Value, "expected after the type"));
        };
        tracker.once(&mut fields.data, map, DataOf(event_type, tracker))?;
        Ok(true)
    }

    fn build<E: Error>(fields: EventFields, tracker: &Tracker<'de>) -> Result<Self, E> {
        let Envelope { id, created_at, api_version, account_id, origin, .. } =
            Envelope::build(fields.envelope, tracker)?;
        let (data, others) = tracker.required(fields.data, "data")?;
        let api_version = Some(api_version);
        Ok(Self { id, created_at, api_version, account_id, origin, data, others })
    }
}

#[derive(Serialize)]
struct Written<'a> {
    id: &'a EventId,
    #[serde(rename = "type")]
    event_type: &'a EventType,
    #[serde(serialize_with = "time::offset")]
    created_at: Timestamp,
    api_version: Option<ApiVersion>,
    account_id: &'a AccountId,
    origin: Option<&'a Origin>,
    data: WrittenData<'a>,
}

impl Verified<'_> {
    /// Reads the event from the body. The headers that repeat the event's type and id are not
    /// signed, and must agree with the body.
    ///
    /// # Errors
    /// Returns an [`EventError`] if the body is not an event, or if one of these headers is
    /// repeated or contradicts the body. You can still store the verified body.
    pub fn event(&self) -> Result<Event, EventError> {
        let headers = self.headers();
        if let Some(header) = headers.repeated() {
            return Err(EventError::Repeated { header });
        }
        let event = Event::from_bytes_verified_earlier(self.bytes())?;
        let claims = [
            (DeliveryHeader::Event, event.event_type().as_str()),
            (DeliveryHeader::Delivery, event.id.as_str()),
        ];
        for (header, ours) in claims {
            if headers.value(header).is_some_and(|theirs| theirs != ours.as_bytes()) {
                return Err(EventError::Contradiction { header });
            }
        }
        Ok(event)
    }
}

/// The reason why a verified body was not read as an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// A genuine body that is not an event. [Keep the bytes](Verified::bytes) and acknowledge the
    /// delivery, because the body would be the same in another attempt. Twenty failed deliveries in
    /// a row disable the endpoint.
    #[error(transparent)]
    Malformed(#[from] ParseError),
    /// An unsigned header that the request has more than once.
    #[error("{header} header is present more than once")]
    #[non_exhaustive]
    Repeated {
        /// The header.
        header: DeliveryHeader,
    },
    /// An unsigned header that contradicts the body.
    ///
    /// Somebody may have replayed the body with other headers, or a proxy may have changed the
    /// headers. To read the event nevertheless, use [`Event::from_bytes_verified_earlier`].
    #[error("{header} header contradicts the body")]
    #[non_exhaustive]
    Contradiction {
        /// The header.
        header: DeliveryHeader,
    },
}
