//! The fields of the envelope that are the same for every type.

use alloc::string::String;
use core::fmt;

use serde::{Serialize, Serializer};

use crate::id::CredentialId;
use crate::json::{deserialize, json_object, open_enum};
use crate::text::{TextError, TextReason};
use crate::time;

open_enum! {
    /// The source of a change. The protocol defines only the value for the assistant. The values
    /// for the dashboard and for credentials are read as [`Other`](Self::Other).
    pub enum OriginSource {
        /// The voice assistant, during a call.
        Voice = "voice",
    }
}

json_object! {
    /// The origin of the change that an event reports.
    ///
    /// ```
    /// use call_assistant::webhook::event::{Origin, OriginSource};
    ///
    /// let mut origin = Origin::new(OriginSource::from("api"));
    /// assert_eq!(origin.credential_id, None);
    /// origin.idempotency_key = Some("7d3a".into());
    /// assert_eq!(Origin::voice().source, OriginSource::Voice);
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
    #[non_exhaustive]
    pub struct Origin {
        /// The source of the change.
        pub source: OriginSource,
        /// The credential with which the change was made, if any.
        pub credential_id: Option<CredentialId>,
        /// The idempotency key of the request that made the change, if the request had a key.
        pub idempotency_key: Option<String>,
    }
}

deserialize!(Origin);

impl Origin {
    /// Creates the origin of a change by the voice assistant.
    #[must_use]
    pub fn voice() -> Self {
        Self::new(OriginSource::Voice)
    }

    /// Creates an origin without a credential. If the change was made with a credential, set the
    /// fields [`credential_id`](Self::credential_id) and
    /// [`idempotency_key`](Self::idempotency_key), too.
    #[must_use]
    pub fn new(source: OriginSource) -> Self {
        Self { source, credential_id: None, idempotency_key: None }
    }
}

/// The version of the API that an event follows. A version is a date, for example `2026-01-15`.
///
/// ```
/// use call_assistant::webhook::event::ApiVersion;
///
/// let version = ApiVersion::parse("2026-01-15")?;
/// assert!(version < ApiVersion::parse("2026-02-01")?);
/// let error = ApiVersion::parse("2026-02-30").unwrap_err();
/// assert_eq!(error.to_string(), "API version is not a date like 2026-01-15");
/// # Ok::<(), call_assistant::TextError>(())
/// ```
///
/// Versions are ordered by date. The changes between two versions, and the way to choose a version,
/// are not published.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiVersion([u8; Self::LEN]);

impl ApiVersion {
    const LEN: usize = "YYYY-MM-DD".len();

    /// Reads a date in the form `YYYY-MM-DD`.
    ///
    /// # Errors
    /// Returns an error if the text has another form, or if the day does not exist.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let refused =
            TextError::new("API version", TextReason::Form, "is not a date like 2026-01-15");
        let bytes = text.as_bytes().try_into().map_err(|_| refused)?;
        let mut midnight = *b"0000-00-00T00:00:00Z";
        if let Some(date) = midnight.first_chunk_mut() {
            *date = bytes;
        }
        time::parse(&midnight).map_err(|_| refused)?;
        Ok(Self(bytes))
    }

    /// Returns the date as text.
    #[must_use]
    #[expect(clippy::expect_used, reason = "it is made of digits and hyphens")]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).expect("digits and hyphens")
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApiVersion").field(&self.as_str()).finish()
    }
}

impl core::str::FromStr for ApiVersion {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        Self::parse(text)
    }
}

impl Serialize for ApiVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

deserialize!(ApiVersion, "a string: a date like 2026-01-15", ApiVersion::parse);
