//! The log of a delivery's attempts, for a dashboard.

use alloc::string::String;
use alloc::vec::Vec;

use http::HeaderMap;
use http::header::SET_COOKIE;

use super::delivery::{Attempt, Delivery, DeliveryStatus, FailureReason, Outcome};
use super::endpoint::AttemptReport;
use super::stored;
use crate::Timestamp;
use crate::json::stored_object;
use crate::secret::excerpt;

stored_object! {
    /// One attempt in a delivery's log. Keep the entry as long as you keep the delivery
    /// ([`Delivery::is_kept`]).
    ///
    /// ```
    /// use call_assistant::webhook::sender::{DeliveryStatus, Excerpt, LogEntry};
    ///
    /// let stored = r#"{"attempt":2,"manual":false,"began_at":"2026-01-01T00:00:00Z","took_ms":1250,
    ///     "outcome":"503","late":false,"status":"waiting","next_at":"2026-01-01T00:01:01Z",
    ///     "response":{"text":"down","cut":false}}"#;
    /// let entry: LogEntry = serde_json::from_str(stored)?;
    /// assert_eq!((entry.attempt, entry.status), (2, DeliveryStatus::Waiting));
    /// assert_eq!(entry.response, Some(Excerpt::new(b"down")));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// The entry contains the response, but no header, signature, secret or other part of the request.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub struct LogEntry {
        /// The number of the attempt, from 1 to 6, and 1 for a manual redelivery.
        #[serde(deserialize_with = "stored::attempt")]
        pub attempt: u8,
        /// Whether the attempt was a manual redelivery.
        pub manual: bool,
        /// When the attempt began.
        pub began_at: Timestamp,
        /// The duration of the attempt, in milliseconds.
        pub took_ms: u64,
        /// The result of the attempt.
        pub outcome: Outcome,
        /// Whether the result came too late to change the delivery. A late 410 still disables the
        /// endpoint.
        pub late: bool,
        /// The delivery's status after the attempt.
        pub status: DeliveryStatus,
        /// When the next attempt is due, if another attempt follows.
        pub next_at: Option<Timestamp>,
        /// The beginning of the response's body.
        pub response: Option<Excerpt>,
        /// The reason why no response came, if the host has set a reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<FailureReason>,
        /// The response's header fields, from [`Excerpt::from_fields`]. The host sets this field.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub headers: Option<Excerpt>,
    }
}

/// An attempt that has ended, for [`settle`](super::settle) and [`LogEntry::new`].
///
/// Closed: a host has to fill in each field.
#[derive(Clone, Copy, Debug)]
pub struct EndedAttempt<'a, D, E> {
    /// The host's id of the delivery.
    pub delivery: D,
    /// The host's id of the delivery's endpoint.
    pub endpoint: E,
    /// The attempt.
    pub attempt: Attempt,
    /// The result of the attempt.
    pub outcome: Outcome,
    /// When the attempt ended. The next wait begins at this instant.
    pub at: Timestamp,
    /// The part of the response's body that was read, for the log.
    pub response: Option<&'a [u8]>,
}

stored_object! {
    /// The beginning of a response's body, or of its header fields.
    ///
    /// ```
    /// use call_assistant::webhook::sender::Excerpt;
    ///
    /// let excerpt = Excerpt::new(b"no such secret: whsec_abc");
    /// assert_eq!((excerpt.text.as_str(), excerpt.cut), ("no such secret: whsec_[redacted]", false));
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub struct Excerpt {
        /// The first bytes as text, at most [`Excerpt::MAX_LEN`]. Bytes that are not UTF-8 are
        /// replaced. A word that looks like a signing secret or an API key is also replaced, because a
        /// receiver's error page may show the receiver's configuration. Escape the text before you show
        /// it.
        pub text: String,
        /// Whether the body or the header fields continued after the excerpt.
        pub cut: bool,
    }
}

impl LogEntry {
    /// Creates the entry of an attempt that has just been finished. `report` is the result of
    /// [`Delivery::finish`], and `delivery` is the delivery after `finish`.
    #[must_use]
    pub fn new<D, E>(
        ended: &EndedAttempt<'_, D, E>,
        report: &AttemptReport,
        delivery: &Delivery,
    ) -> Self {
        let EndedAttempt { attempt, outcome, at, response, .. } = ended;
        let waiting = delivery.status() == DeliveryStatus::Waiting;
        Self {
            attempt: attempt.number(),
            manual: attempt.is_manual(),
            began_at: attempt.began_at(),
            took_ms: u64::try_from(at.since(attempt.began_at()).as_millis()).unwrap_or(u64::MAX),
            outcome: *outcome,
            late: report.is_late(),
            status: delivery.status(),
            next_at: delivery.due(*at).filter(|_| waiting),
            response: response.map(Excerpt::new),
            reason: None,
            headers: None,
        }
    }
}

impl Excerpt {
    /// The longest excerpt: 1,024 bytes.
    pub const MAX_LEN: usize = 1024;

    /// Creates an excerpt of a body.
    #[must_use]
    pub fn new(body: &[u8]) -> Self {
        Self { text: excerpt(body, Self::MAX_LEN), cut: body.len() > Self::MAX_LEN }
    }

    /// Creates an excerpt of header fields, with one `name: value` in each line. The value of
    /// `set-cookie` becomes `[redacted]`, because a reader of the log could log in with a cookie.
    #[must_use]
    pub fn from_fields(fields: &HeaderMap) -> Self {
        let mut text = Vec::new();
        for (name, value) in fields {
            if text.len() > Self::MAX_LEN {
                break;
            }
            let value =
                if name == SET_COOKIE { b"[redacted]".as_slice() } else { value.as_bytes() };
            for part in [name.as_str().as_bytes(), b": ", value, b"\n"] {
                text.extend_from_slice(part);
            }
        }
        Self::new(&text)
    }
}
