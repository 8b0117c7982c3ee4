//! An event as the bytes that are stored, signed and sent.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use http::{HeaderMap, HeaderValue, Method, Request};
use serde::{Serialize, Serializer};

use super::data::EventType;
use super::received::Event;
use super::required_fields::{SendableFields, required_fields};
use crate::Timestamp;
use crate::id::{AccountId, EventId};
use crate::json::{ParseError, deserialize};
use crate::webhook::signer::Signer;

/// The body of one event: the bytes that every endpoint receives in every attempt.
///
/// ```
/// use call_assistant::webhook::event::EventBody;
///
/// let row = r#"{"id":"evt_1","type":"ping","created_at":"2026-01-01T00:00:00+00:00",
///     "api_version":"2026-01-15","account_id":"acct_1","origin":null,"data":{"message":"hi"}}"#;
/// let body = EventBody::from_stored(row)?;
/// assert_eq!((body.id().as_str(), body.event_type().as_str()), ("evt_1", "ping"));
/// assert_eq!(body.as_str(), row); // byte for byte
/// # Ok::<(), call_assistant::json::ParseError>(())
/// ```
///
/// [`NewEvent`](super::NewEvent) creates a body. Store the text of [`as_str`](Self::as_str), and
/// restore the body with [`from_stored`](Self::from_stored). Serde reads and writes a body as a
/// string. The id, type, account and time of a body always come from its bytes. Therefore no event
/// is delivered with the id of another event. Cloning a body is cheap.
#[derive(Clone, PartialEq, Eq)]
pub struct EventBody {
    text: Arc<str>,
    id: EventId,
    event_type: EventType,
    account_id: AccountId,
    created_at: Timestamp,
}

impl EventBody {
    /// Restores a stored body with unchanged bytes.
    ///
    /// This function reads `id`, `type`, `account_id` and `created_at`. `data` must be present.
    /// `data` and all other fields may have any JSON value.
    ///
    /// # Errors
    /// Returns the first fault if the bytes are not an event, or if the event's type cannot be
    /// written in a header.
    #[expect(clippy::expect_used, reason = "what was read as JSON is UTF-8")]
    pub fn from_stored(bytes: impl AsRef<[u8]>) -> Result<Self, ParseError> {
        let bytes = bytes.as_ref();
        let SendableFields { id, r#type, created_at, account_id, .. } = required_fields(bytes)?;
        let text = core::str::from_utf8(bytes).expect("it was read as JSON").into();
        Ok(Self { text, id, event_type: r#type.0, account_id, created_at })
    }

    /// Writes an event as a body. Each event is written only once.
    #[expect(clippy::expect_used, reason = "JSON is UTF-8")]
    pub(super) fn write(event: &Event) -> Self {
        let text = String::from_utf8(event.to_json()).expect("JSON is UTF-8");
        Self {
            text: text.into(),
            id: event.id.clone(),
            event_type: event.event_type().clone(),
            account_id: event.account_id.clone(),
            created_at: event.created_at,
        }
    }

    /// Returns the exact bytes of the body.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// Returns the body as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the event's id.
    #[must_use]
    pub fn id(&self) -> &EventId {
        &self.id
    }

    /// Returns the event's type.
    #[must_use]
    pub fn event_type(&self) -> &EventType {
        &self.event_type
    }

    /// Returns the account that the event belongs to.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        &self.account_id
    }

    /// Returns the time at which the event was created. The 30 days of retention begin at this
    /// time.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// Creates the five headers of one delivery attempt.
    #[expect(clippy::expect_used, reason = "ids and types are checked where a body is made")]
    pub(in crate::webhook) fn headers(&self, signer: &Signer, now: Timestamp) -> HeaderMap {
        let value = |text| HeaderValue::from_str(text).expect("visible ASCII");
        let event_type = value(self.event_type.as_str());
        signer.headers(event_type, value(self.id.as_str()), self.as_bytes(), now)
    }

    /// Creates the POST request that delivers this event, with the URI `/` and the five headers of
    /// a delivery.
    ///
    /// The request is meant for the tests of a receiver: see [`testing`](crate::webhook::testing).
    #[must_use]
    pub fn signed_request(&self, signer: &Signer, now: Timestamp) -> Request<Vec<u8>> {
        let mut request = Request::new(self.as_bytes().into());
        *request.method_mut() = Method::POST;
        *request.headers_mut() = self.headers(signer, now);
        request
    }
}

/// The bytes of [`EventBody::as_bytes`], for HTTP clients that take a body without copying it.
impl AsRef<[u8]> for EventBody {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// Shows everything except the text of the body, because this text may contain callers' words.
impl fmt::Debug for EventBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBody")
            .field("id", &self.id)
            .field("event_type", &self.event_type)
            .field("account_id", &self.account_id)
            .field("created_at", &self.created_at)
            .field("len", &self.text.len())
            .finish()
    }
}

impl Serialize for EventBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

deserialize!(EventBody, "a string: an event's body", |text| EventBody::from_stored(text));
