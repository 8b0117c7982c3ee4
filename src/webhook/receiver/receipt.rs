//! From a receipt to the responses that acknowledge it.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::inbox_entry::InboxEntry;
use super::receive::ReceiptError;
use crate::Timestamp;
use crate::id::AccountId;
use crate::json::ParseError;
use crate::webhook::event::{Event, EventError};
use crate::webhook::{Verified, WebhookResponse};

/// A genuine delivery that is not acknowledged yet. Created by
/// [`Verifier::receive`](crate::webhook::Verifier::receive).
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
/// A receipt is spent by one of two methods, and they are the only way to an acknowledgement:
/// [`stored`](Self::stored), or [`claim`](Self::claim) and then [`Claimed::done`]. Drop it to answer
/// something else, such as [`WebhookResponse::Unavailable`].
#[derive(Debug)]
#[must_use = "store the event, or claim it"]
pub struct Receipt {
    key: EventKey,
    event: Box<Result<Event, ParseError>>,
    secret_index: usize,
}

/// The key of an event: of its row in a store.
///
/// An event has one id, unique within its account. A genuine body that is not an event has no
/// account, and the SHA-256 of its bytes as its id: `sha256:` and 64 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventKey {
    account: Option<AccountId>,
    id: String,
}

/// The decision about an event that arrived: see [`Receipt::claim`].
///
/// Closed: a host has to act on each of the two.
#[derive(Debug)]
#[must_use]
pub enum Claim {
    /// Store [the entry](Claimed::entry) if the row is still the one that was read, then handle the
    /// event.
    Process(Claimed),
    /// Answer this: 204 to an event that was processed before, 503 while another handler holds it
    /// and may still fail.
    Answer(WebhookResponse),
}

/// An event that is being handled.
#[derive(Debug)]
#[must_use = "handle the event, then call `done` or `failed`"]
pub struct Claimed {
    receipt: Receipt,
    entry: InboxEntry,
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

    /// Returns the key to store the body under.
    #[must_use]
    pub fn key(&self) -> &EventKey {
        &self.key
    }

    /// Returns the event.
    ///
    /// # Errors
    /// Returns why the body is not an event. It is genuine all the same: keep the bytes for a person
    /// or for a later version of this crate.
    pub fn event(&self) -> Result<&Event, &ParseError> {
        Result::as_ref(&self.event)
    }

    /// Returns which secret matched, as [`Verified::secret_index`] does.
    #[must_use]
    pub fn secret_index(&self) -> usize {
        self.secret_index
    }

    /// Acknowledges the delivery. Call it once the body is stored under [its key](Self::key), now or
    /// by an earlier copy.
    pub fn stored(self) -> WebhookResponse {
        WebhookResponse::Accepted
    }

    /// Decides whether the event is to be handled now, given the entry that is stored under
    /// [its key](Self::key). The handler then has `lease` to finish, for example
    /// [`Claim::LEASE`].
    ///
    /// A stored claim that ends more than twice its own length after `now` was written by a host
    /// whose clock was wrong, and counts as expired. See [the module's page](super#wrong-clocks).
    pub fn claim(self, stored: Option<&InboxEntry>, lease: Duration, now: Timestamp) -> Claim {
        match stored {
            Some(InboxEntry::Done { .. }) => Claim::Answer(WebhookResponse::Duplicate),
            Some(entry) if entry.is_held(now) => Claim::Answer(WebhookResponse::Unavailable),
            _ => Claim::Process(Claimed {
                receipt: self,
                entry: InboxEntry::Taken { at: now, until: now.saturating_add(lease) },
            }),
        }
    }
}

impl Claim {
    /// The lease of a handler unless the host chooses another one: one minute.
    ///
    /// The service gives an attempt ten seconds and makes its third attempt a minute after the second.
    pub const LEASE: Duration = Duration::from_secs(60);
}

impl Claimed {
    /// Returns the receipt of the event.
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Returns the entry to store before the event is handled. It identifies the claim.
    #[must_use]
    pub fn entry(&self) -> InboxEntry {
        self.entry
    }

    /// Acknowledges an event that was handled. Store the entry before the response is sent, whatever
    /// the row is by now; ideally in one transaction with the effects.
    #[must_use = "store the entry, then send the response"]
    pub fn done(self, now: Timestamp) -> (InboxEntry, WebhookResponse) {
        (InboxEntry::Done { at: now }, WebhookResponse::Accepted)
    }

    /// Gives the event back, because it could not be handled. Store the entry if the row still is
    /// [the claim](Self::entry): the next copy is then handled at once, not only when the lease has
    /// expired.
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

    /// Returns the account's id. It is empty for a body that is not an event.
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
