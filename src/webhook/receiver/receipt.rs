//! The receipt of a verified delivery, and the responses that acknowledge the delivery.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::time::Duration;

use http::{HeaderMap, Response};
use sha2::{Digest as _, Sha256};

use super::inbox_entry::InboxEntry;
use crate::Timestamp;
use crate::id::AccountId;
use crate::json::{ParseError, stored_object};
use crate::webhook::event::{Event, EventError};
use crate::webhook::{DeliveryHeaders, Verified, Verifier, VerifyError, WebhookResponse};

/// A genuine delivery that is not acknowledged yet.
/// [`Verifier::receive`](crate::webhook::Verifier::receive) creates receipts.
///
/// ```
/// use call_assistant::webhook::WebhookResponse;
/// # use call_assistant::Timestamp;
/// # use call_assistant::webhook::{Signer, SigningSecret, Verifier, testing};
/// # use std::collections::BTreeMap;
/// # let (mut rows, now) = (BTreeMap::new(), Timestamp::UNIX_EPOCH);
/// # let secret = SigningSecret::parse("whsec_test")?;
/// # let body = br#"{"id":"evt_1","type":"ping","created_at":"2026-01-01T00:00:00Z","origin":null,
/// #     "api_version":"2026-01-15","account_id":"acct_1","data":{"message":"hello"}}"#;
/// # let request = testing::signed_request(&Signer::new(secret.clone()), "ping", "evt_1", body, now)?;
/// # let verifier = Verifier::new(secret);
///
/// // `verifier` is made once; `rows` is your table, with the key as its unique index.
/// let receipt = verifier.receive(request.headers(), request.body(), now)?;
/// assert_eq!((receipt.key().account(), receipt.key().id()), ("acct_1", "evt_1"));
/// assert_eq!(receipt.event().unwrap().event_type().as_str(), "ping");
/// rows.insert(receipt.key().clone(), request.body().clone());
/// let response: WebhookResponse = receipt.stored();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// There are only two ways to acknowledge a delivery, and both consume the receipt:
/// [`stored`](Self::stored), or [`claim`](Self::claim) and then [`ActiveClaim::done`]. To send
/// another answer, such as [`WebhookResponse::Unavailable`], drop the receipt.
#[derive(Debug)]
#[must_use = "store the event, or claim it"]
pub struct Receipt {
    key: EventKey,
    event: Box<Result<Event, ParseError>>,
    secret_index: usize,
}

stored_object! {
    /// The key of an event's row in a store.
    ///
    /// The id of an event is unique within its account. If a
    /// body has a valid signature but is not an event, its key has no account. The id of such a key is
    /// the SHA-256 of the body: `sha256:` and 64 hex digits.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct EventKey {
        account: Option<AccountId>,
        id: String,
    }
}

/// The decision about an event that arrived: see [`Receipt::claim`].
///
/// Closed: a host has to handle each of the two outcomes.
#[derive(Debug)]
#[must_use]
pub enum ClaimOutcome {
    /// An event to handle. First store [the entry](ActiveClaim::entry), but only if the event's row
    /// has not changed since you read it.
    Process(ActiveClaim),
    /// The answer to send: 204 if the event was processed before, or 503 if another handler holds
    /// the event and may still fail.
    Answer(WebhookResponse),
}

/// An event that is being handled.
#[derive(Debug)]
#[must_use = "handle the event, then call `done` or `failed`"]
pub struct ActiveClaim {
    receipt: Receipt,
    entry: InboxEntry,
}

/// The reason why a delivery was rejected.
///
/// Open: a later version may distinguish more reasons.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// A signature that does not prove that the body is genuine.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// An unsigned header that is repeated or contradicts the body.
    #[error(transparent)]
    Event(#[from] EventError),
}

impl Verifier {
    /// Verifies a delivery as [`verify`](Self::verify) does, and reads its event.
    ///
    /// # Errors
    /// Returns a [`ReceiptError`] if the delivery is not genuine, or if an unsigned header is
    /// repeated or contradicts the body. Log the error, and answer with its
    /// [`response`](ReceiptError::response). A genuine body that is not an event is no error. Store
    /// such a body too, because otherwise the service sends it again.
    pub fn receive(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Receipt, ReceiptError> {
        Receipt::new(self.verify(headers, body, now)?)
    }

    /// Receives a delivery as [`receive`](Self::receive) does, but with headers that are not an
    /// `http` 1.x `HeaderMap`.
    ///
    /// # Errors
    /// Returns a [`ReceiptError`], as [`receive`](Self::receive) does.
    pub fn receive_parts(
        &self,
        headers: DeliveryHeaders<'_>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Receipt, ReceiptError> {
        Receipt::new(self.verify_parts(headers, body, now)?)
    }
}

impl Receipt {
    pub(super) fn new(verified: Verified<'_>) -> Result<Self, ReceiptError> {
        let event = match verified.event() {
            Ok(event) => Ok(event),
            Err(EventError::Malformed(error)) => Err(error),
            Err(error) => return Err(error.into()),
        };
        let key = EventKey::new(event.as_ref().ok(), verified.bytes());
        Ok(Self { key, event: Box::new(event), secret_index: verified.secret_index() })
    }

    /// Returns the key under which the body is stored.
    #[must_use]
    pub fn key(&self) -> &EventKey {
        &self.key
    }

    /// Returns the event.
    ///
    /// # Errors
    /// Returns an error if the envelope in the body cannot be read. For example, its id does not
    /// begin with `evt_`. Such a body is not an event, but genuine. Therefore keep its bytes for a
    /// person or for a later version of this crate. If only the data in the envelope is unreadable,
    /// the event has [`EventData::Unreadable`](crate::webhook::event::EventData).
    pub fn event(&self) -> Result<&Event, &ParseError> {
        Result::as_ref(&self.event)
    }

    /// Returns the index of the secret that matched, as [`Verified::secret_index`] does.
    #[must_use]
    pub fn secret_index(&self) -> usize {
        self.secret_index
    }

    /// Acknowledges the delivery. Call this method only after the body of this delivery, or of
    /// another delivery of the event, is stored under [its key](Self::key).
    pub fn stored(self) -> WebhookResponse {
        WebhookResponse::Accepted
    }

    /// Decides whether the event is to be handled now, given the entry that is stored under [its
    /// key](Self::key). The handler should then finish within `lease`, for example within
    /// [`ActiveClaim::LEASE`].
    ///
    /// If a stored claim ends more than twice its own length after `now`, the clock of the host
    /// that stored it was wrong. The claim then counts as expired. See [the module's
    /// page](super#wrong-clocks).
    pub fn claim(
        self,
        stored: Option<&InboxEntry>,
        lease: Duration,
        now: Timestamp,
    ) -> ClaimOutcome {
        match stored {
            Some(InboxEntry::Done { .. }) => ClaimOutcome::Answer(WebhookResponse::Duplicate),
            Some(entry) if entry.is_held(now) => ClaimOutcome::Answer(WebhookResponse::Unavailable),
            _ => ClaimOutcome::Process(ActiveClaim {
                receipt: self,
                entry: InboxEntry::Taken { at: now, until: now.saturating_add(lease) },
            }),
        }
    }
}

impl ActiveClaim {
    /// The default lease of a handler: one minute.
    ///
    /// The lease is longer than an attempt, which ends after ten seconds. If a handler dies in the
    /// second attempt, its lease expires before the third attempt, which begins a minute later.
    pub const LEASE: Duration = Duration::from_secs(60);

    /// Returns the receipt of the event.
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Returns the entry to store before the event is handled. The entry identifies the claim.
    #[must_use]
    pub fn entry(&self) -> InboxEntry {
        self.entry
    }

    /// Acknowledges an event that was handled. Store the entry before you send the response, even
    /// if the event's row has changed meanwhile. Ideally, store the entry and the effects in one
    /// transaction.
    #[must_use = "store the entry, then send the response"]
    pub fn done(self, now: Timestamp) -> (InboxEntry, WebhookResponse) {
        (InboxEntry::Done { at: now }, WebhookResponse::Accepted)
    }

    /// Releases the event, because it could not be handled. If the event's row still is [the
    /// claim](Self::entry), store the returned entry. The next copy of the event is then handled
    /// even before the lease has expired.
    #[must_use = "store the entry, then send the response"]
    pub fn failed(self) -> (InboxEntry, WebhookResponse) {
        let entry = InboxEntry::Taken { at: Timestamp::MIN, until: Timestamp::MIN };
        (entry, WebhookResponse::Unavailable)
    }
}

impl EventKey {
    fn new(event: Option<&Event>, bytes: &[u8]) -> Self {
        match event {
            Some(event) => {
                Self { account: Some(event.account_id.clone()), id: event.id.as_str().into() }
            }
            None => {
                Self { account: None, id: format!("sha256:{}", hex::encode(Sha256::digest(bytes))) }
            }
        }
    }

    /// Returns the account's id. If the body is not an event, the text is empty.
    #[must_use]
    pub fn account(&self) -> &str {
        self.account.as_ref().map_or("", AccountId::as_str)
    }

    /// Returns the event's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl ReceiptError {
    /// Returns the answer: always [`WebhookResponse::Rejected`].
    #[must_use]
    pub const fn response(&self) -> WebhookResponse {
        WebhookResponse::Rejected
    }

    /// Creates the HTTP response: always 400 with an empty body.
    ///
    /// The response does not contain the cause, which belongs in the receiver's log.
    #[must_use]
    pub fn into_response<B: Default>(self) -> Response<B> {
        self.response().into_response()
    }
}
