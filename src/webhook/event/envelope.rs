//! What the envelope says about an event of any type.

use alloc::string::String;
use core::fmt;

use ::time::{Date, Month};
use serde::{Serialize, Serializer};

use crate::id::CredentialId;
use crate::json::{json_object, json_text, open_enum};

open_enum! {
    /// Names where a change came from. Only the assistant's value is published; the dashboard and
    /// credentials have values that are read as [`Other`](Self::Other).
    pub enum OriginSource {
        /// The voice assistant, during a call.
        Voice = "voice",
    }
}

json_object! {
    /// Says who or what made the change that an event reports.
///
/// ```
/// use call_assistant::webhook::event::{Origin, OriginSource};
///
/// let origin = Origin::new(OriginSource::from("dashboard"));
/// assert_eq!(origin.credential_id, None);
/// assert_eq!(Origin::voice().source, OriginSource::Voice);
/// ```
    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
    #[non_exhaustive]
    pub struct Origin {
        /// Says where the change came from.
        pub source: OriginSource,
        /// Identifies the credential that made the change, if one did.
        pub credential_id: Option<CredentialId>,
        /// Holds the idempotency key of the request that made the change, if one did.
        pub idempotency_key: Option<String>,
    }
}

impl Origin {
    /// Creates the origin of a change by the voice assistant.
    #[must_use]
    pub fn voice() -> Self {
        Self::new(OriginSource::Voice)
    }

    /// Creates an origin without a credential.
    #[must_use]
    pub fn new(source: OriginSource) -> Self {
        Self { source, credential_id: None, idempotency_key: None }
    }

    /// Creates the origin of a request that was made with a credential.
    #[must_use]
    pub fn from_credential(
        source: OriginSource,
        credential_id: CredentialId,
        idempotency_key: Option<String>,
    ) -> Self {
        Self { source, credential_id: Some(credential_id), idempotency_key }
    }
}

/// Names the version of the API that an event follows: a date, `2026-01-15`.
///
/// ```
/// use call_assistant::webhook::event::{ApiVersion, ApiVersionError};
///
/// let version = ApiVersion::parse("2026-01-15")?;
/// assert!(version < ApiVersion::parse("2026-02-01")?);
/// assert_eq!(ApiVersion::parse("2026-02-30"), Err(ApiVersionError::Calendar));
/// # Ok::<(), ApiVersionError>(())
/// ```
///
/// Versions order as their dates do. What changes between two versions, and how a customer chooses
/// one, is not published.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiVersion([u8; Self::LEN]);

impl ApiVersion {
    const LEN: usize = "YYYY-MM-DD".len();

    /// Reads a date: `YYYY-MM-DD`.
    ///
    /// # Errors
    /// Returns an error if the text has another form, or if the calendar has no such day.
    pub fn parse(text: &str) -> Result<Self, ApiVersionError> {
        let bytes: [u8; Self::LEN] =
            text.as_bytes().try_into().map_err(|_| ApiVersionError::Form)?;
        let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = bytes else {
            return Err(ApiVersionError::Form);
        };
        let digits = [y1, y2, y3, y4, m1, m2, d1, d2];
        if !digits.iter().all(u8::is_ascii_digit) {
            return Err(ApiVersionError::Form);
        }
        let [century, year, month, day] = [[y1, y2], [y3, y4], [m1, m2], [d1, d2]].map(two_digits);
        let year = i32::from(century).saturating_mul(100).saturating_add(year.into());
        let month = Month::try_from(month).map_err(|_| ApiVersionError::Calendar)?;
        Date::from_calendar_date(year, month, day).map_err(|_| ApiVersionError::Calendar)?;
        Ok(Self(bytes))
    }

    /// Returns the date as text.
    #[must_use]
    #[expect(clippy::expect_used, reason = "it is made of digits and hyphens")]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).expect("digits and hyphens")
    }
}

/// Of two ASCII digits.
fn two_digits([tens, units]: [u8; 2]) -> u8 {
    (tens & 0x0f).saturating_mul(10).saturating_add(units & 0x0f)
}

/// Says why a text is not an [`ApiVersion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiVersionError {
    /// The text does not have the form `YYYY-MM-DD`.
    #[error("API version is not of the form YYYY-MM-DD")]
    Form,
    /// The calendar has no such month or day.
    #[error("API version is not a day of the calendar")]
    Calendar,
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
    type Err = ApiVersionError;

    fn from_str(text: &str) -> Result<Self, ApiVersionError> {
        Self::parse(text)
    }
}

impl Serialize for ApiVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

json_text!(ApiVersion, "a string: a date like 2026-01-15", ApiVersion::parse);
