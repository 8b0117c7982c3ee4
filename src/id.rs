//! Ids: opaque text, with one type for each kind of object.
//!
//! ```
//! use call_assistant::TextReason;
//! use call_assistant::id::{CallId, EventId};
//!
//! let call = CallId::parse("call_8fK2")?;
//! assert_eq!(call.as_str(), "call_8fK2");
//!
//! // This crate draws no random numbers: pass sixteen random bytes.
//! let event = EventId::from_random([0x5a; 16]);
//! assert_eq!(event.as_str(), "evt_5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a");
//!
//! let wrong = EventId::parse("call_8fK2").unwrap_err();
//! assert_eq!(wrong.reason(), TextReason::Prefix);
//! assert_eq!(wrong.to_string(), "event id does not begin with evt_");
//! # Ok::<(), call_assistant::TextError>(())
//! ```
//!
//! An id is 1 to [`MAX_ID_LEN`] bytes of visible ASCII (`!` to `~`), so that headers, paths and
//! logs can contain the id unchanged. Ids are compared byte by byte, also in the order of the list
//! of calls. Cloning an id is cheap.
//!
//! JSON readers accept more texts than `parse`. In JSON, an [`AccountId`], [`CallId`],
//! [`ContactId`] or [`AppointmentId`] is any text of 1 to [`MAX_ID_LEN`] bytes, so that one unusual
//! id does not make a call unreadable. An id's `Display` escapes control characters. `as_str`
//! returns the text unchanged.
//!
//! The [protocol](crate::guide::protocol) gives a prefix to [`EventId`] (`evt_`) and [`RequestId`]
//! (`req_`) only. Therefore only `EventId` and `RequestId` check a prefix. Derive nothing from the
//! text of an id after its prefix.

use alloc::string::ToString;
use alloc::sync::Arc;
use core::fmt;

use sha2::{Digest, Sha256};

use crate::json::deserialize;
use crate::text::{TextError, TextReason, check_len, check_present, check_visible};

/// The longest id: 255 bytes.
pub const MAX_ID_LEN: usize = 255;

macro_rules! id {
    ($(#[$meta:meta])* $name:ident, $what:literal, made: $made:literal $(, checked: $prefix:literal)?, read: $read:ident) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Parses an id.
            ///
            /// # Errors
            /// Returns an error if the text is empty, longer than [`MAX_ID_LEN`] bytes, or not
            /// visible ASCII
            #[doc = concat!($("; or if it does not begin with `", $prefix, "`",)? ".")]
            pub fn parse(text: &str) -> Result<Self, TextError> {
                check($what, text)?;
                Self::read_json(text)
            }

            /// Creates an id from sixteen random bytes.
            #[must_use]
            pub fn from_random(bytes: [u8; 16]) -> Self {
                Self(from_random($made, bytes))
            }

            /// Returns the text of the id.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // A received id may hold a line end, which must not begin a line of a log.
                match self.0.bytes().all(|byte| byte.is_ascii_graphic()) {
                    true => f.pad(&self.0),
                    false => f.pad(&self.0.escape_debug().to_string()),
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.as_str()).finish()
            }
        }

        impl core::str::FromStr for $name {
            type Err = TextError;

            fn from_str(text: &str) -> Result<Self, TextError> {
                Self::parse(text)
            }
        }

        /// Allows lookups by `&str` in maps with ids as keys, because ids compare as their text.
        impl core::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl $name {
            /// Reads the text of a JSON string.
            fn read_json(text: &str) -> Result<Self, TextError> {
                $read($what, text)?;
                $(if !text.starts_with($prefix) {
                    return Err(TextError::new($what, TextReason::Prefix, $prefix));
                })?
                Ok(Self(text.into()))
            }
        }

        deserialize!($name, concat!("a string: ", $what), $name::read_json);
    };
}

id!(/// The id of a customer's account.
    AccountId, "account id", made: "acct_", read: check_any);
id!(/// The id of an answered call.
    CallId, "call id", made: "call_", read: check_any);
id!(/// The id of a contact in the customer's address book.
    ContactId, "contact id", made: "cont_", read: check_any);
id!(/// The id of an appointment.
    AppointmentId, "appointment id", made: "appt_", read: check_any);
id!(/// The id of a credential (today: an API key), never its secret.
    CredentialId, "credential id", made: "cred_", read: check);
id!(/// The id of an event. An event has the same id for every endpoint and in every attempt.
    EventId, "event id", made: "evt_", checked: "evt_", read: check);
id!(/// The id of a request. Quote this id to support.
    RequestId, "request id", made: "req_", checked: "req_", read: check);
id!(/// The id of a customer's webhook endpoint.
    EndpointId, "endpoint id", made: "whep_", read: check);
id!(/// The id of the delivery of one event to one endpoint.
    DeliveryId, "delivery id", made: "dlv_", read: check);

impl EventId {
    /// Creates the id of an event from the occurrence that the event reports. The same occurrence
    /// always gives the same id. Therefore an outbox may relay an event more than once.
    ///
    /// ```
    /// use call_assistant::id::EventId;
    ///
    /// let id = EventId::derived(&["acct_1", "call.ended", "call_8fK2"]);
    /// assert_eq!(id, EventId::derived(&["acct_1", "call.ended", "call_8fK2"]));
    /// assert_ne!(id, EventId::derived(&["acct_1", "call.ended", "call_", "8fK2"]));
    /// ```
    ///
    /// Pass the account, the event's type and its subject, such as a call's id. If the subject can
    /// have several occurrences, also pass a text that identifies the occurrence, such as the
    /// record's version. Insert the event only if its id is new (`ON CONFLICT DO NOTHING`). Set the
    /// event's `created_at` to the time of the change, not of the relay, so that a repeated event
    /// also has the same bytes. The id is no secret, because it can be computed from the parts.
    ///
    /// The id is the first 16 bytes of the SHA-256 of all parts. The length of each part precedes
    /// the part, as eight big-endian bytes. Later versions compute the same id.
    #[must_use]
    pub fn derived(parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            let len = u64::try_from(part.len()).unwrap_or(u64::MAX);
            hash.update(len.to_be_bytes());
            hash.update(part);
        }
        let digest: [u8; 32] = hash.finalize().into();
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(digest).for_each(|(byte, from)| *byte = from);
        Self::from_random(bytes)
    }
}

fn check(what: &'static str, text: &str) -> Result<(), TextError> {
    check_any(what, text)?;
    check_visible(what, text)
}

fn check_any(what: &'static str, text: &str) -> Result<(), TextError> {
    check_present(what, text)?;
    check_len(what, text, MAX_ID_LEN)
}

fn from_random(prefix: &str, bytes: [u8; 16]) -> Arc<str> {
    alloc::format!("{prefix}{}", hex::encode(bytes)).into()
}
