//! An event as the bytes that are stored, signed and sent.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use http::Request;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::data::EventType;
use super::read::Event;
use crate::Timestamp;
use crate::id::{AccountId, EventId};
use crate::json::ParseError;
use crate::webhook::{HeaderTextError, Signer, testing};

/// One event, written once: the bytes every endpoint and every attempt gets.
///
/// [`NewEvent`](super::NewEvent) makes it. Store it as it is; each attempt signs
/// [`as_bytes`](Self::as_bytes) afresh and sends the same. Cloning is cheap.
///
/// With serde it is a string, the body itself. Elsewhere, store the bytes and get it back with
/// [`from_stored`](Self::from_stored).
#[derive(Clone, PartialEq, Eq)]
pub struct EventBody {
    text: Arc<str>,
    id: EventId,
    event_type: EventType,
    account_id: AccountId,
    created_at: Timestamp,
}

impl EventBody {
    /// Takes up a body that was made here and stored. It stays as it is, to the byte.
    ///
    /// # Errors
    /// These bytes are not an event.
    pub fn from_stored(bytes: &[u8]) -> Result<Self, ParseError> {
        let event = Event::from_bytes_verified_earlier(bytes)?;
        // Reading it has shown that it is UTF-8.
        let text = core::str::from_utf8(bytes).unwrap_or_default();
        Ok(Self::new(text.into(), &event))
    }

    pub(super) fn render(event: &Event) -> Self {
        let bytes = event.to_json();
        // JSON is UTF-8.
        let text = core::str::from_utf8(&bytes).unwrap_or_default();
        Self::new(text.into(), event)
    }

    fn new(text: Arc<str>, event: &Event) -> Self {
        Self {
            text,
            id: event.id.clone(),
            event_type: event.event_type().clone(),
            account_id: event.account_id.clone(),
            created_at: event.created_at,
        }
    }

    /// The body, byte for byte.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// The body as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Which event.
    #[must_use]
    pub fn id(&self) -> &EventId {
        &self.id
    }

    /// Its type.
    #[must_use]
    pub fn event_type(&self) -> &EventType {
        &self.event_type
    }

    /// Whose event it is.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        &self.account_id
    }

    /// When it was made: what the 30 days of retention count from.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// The request that delivers this event: for a receiver's own tests, as in
    /// [`testing`](crate::webhook::testing).
    ///
    /// # Errors
    /// The type is empty or not visible ASCII. It can only be in a stored body from elsewhere.
    pub fn signed_request(
        &self,
        signer: &Signer,
        now: Timestamp,
    ) -> Result<Request<Vec<u8>>, HeaderTextError> {
        let event_type = self.event_type.as_str();
        testing::signed_request(signer, event_type, self.id.as_str(), self.as_bytes(), now)
    }
}

/// Without the body, which may hold what callers said.
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

impl<'de> Deserialize<'de> for EventBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = EventBody;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string: an event's body")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<EventBody, E> {
                EventBody::from_stored(text.as_bytes()).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}
