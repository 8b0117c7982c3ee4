//! One attempt: its number, its deadline, and its request.

use alloc::vec::Vec;

use http::Request;

use super::super::endpoint::SignedDestination;
use super::super::stored::{self, MismatchError};
use super::Delivery;
use crate::Timestamp;
use crate::json::stored_object;
use crate::webhook::event::EventBody;

stored_object! {
    /// An attempt that has begun. Pass the attempt and its outcome to
    /// [`Delivery::finish`](super::super::Delivery::finish).
    ///
    /// ```
    /// # use call_assistant::Timestamp;
    /// # use call_assistant::id::{AccountId, EventId};
    /// # use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
    /// use call_assistant::webhook::sender::SignedDestination;
    /// # use call_assistant::webhook::sender::{Delivery, EndpointHealth, EndpointUrl};
    /// # use call_assistant::webhook::{Signer, SigningSecret};
    /// # let now = Timestamp::from_unix(1_767_225_600).unwrap();
    /// # let (id, account) = (EventId::parse("evt_1")?, AccountId::parse("acct_1")?);
    /// # let event = NewEvent::new(id, account, ApiVersion::parse("2026-01-15")?, Origin::voice(), now);
    /// # let event = event.ping("It works.")?;
    /// # let endpoint = EndpointHealth::new(1, now);
    /// # let mut delivery = Delivery::accept(&event, &endpoint, now);
    /// # let target = EndpointUrl::parse("https://hooks.example.com/calls")?;
    /// # let signer = Signer::new(SigningSecret::parse("whsec_shown-once")?);
    ///
    /// // `endpoint`, `target` and `signer` come from the endpoint's row, `event` and `delivery` from theirs.
    /// let destination = SignedDestination::new(&endpoint, target, signer);
    /// let attempt = delivery.begin(&endpoint, now)?;
    /// let request = attempt.request(&destination, &event, now)?;
    /// assert_eq!(request.headers()["x-service-delivery"], "evt_1");
    /// assert_eq!(request.body(), event.as_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Attempts can be serialized, because a host may send an attempt's request from another process.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[must_use = "send it, and finish the delivery with its outcome"]
    pub struct Attempt {
        /// The numbers of the attempt's delivery and endpoint.
        pub(super) of: (u64, u64),
        /// The event's `created_at`. A column may have truncated this instant to microseconds.
        pub(super) event_created_at: Timestamp,
        #[serde(deserialize_with = "stored::attempt")]
        pub(super) number: u8,
        pub(super) manual: bool,
        pub(super) began_at: Timestamp,
        pub(super) deadline: Timestamp,
        /// The delivery's version when the attempt began. The sender holds the lease while the delivery
        /// has this version.
        pub(super) lease: u32,
        /// The delivery's generation, which was the endpoint's generation when the attempt began.
        pub(super) generation: u32,
        /// When the endpoint last became active or was moved before the attempt, as in
        /// `Life::began`.
        pub(super) life: u32,
    }
}

impl Attempt {
    /// Returns the number of the attempt, beginning with 1. A manual redelivery has number 1.
    #[must_use]
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Returns whether the attempt is a manual redelivery.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.manual
    }

    /// Returns when the attempt began.
    #[must_use]
    pub fn began_at(&self) -> Timestamp {
        self.began_at
    }

    /// Returns the deadline. If the head of the response has not arrived by the deadline, the attempt
    /// times out.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        self.deadline
    }

    /// Checks that the attempt belongs to this delivery.
    pub(in super::super) fn check(&self, delivery: &Delivery) -> Result<(), MismatchError> {
        let (id, endpoint) = self.of;
        // One that began before its row had a number has none.
        let is_known = id != 0 && delivery.id != 0;
        match (is_known && id != delivery.id) || endpoint != delivery.endpoint {
            true => Err(MismatchError::Delivery),
            false => Ok(()),
        }
    }

    /// Creates the request, a POST of the event's stored bytes with its own timestamp and signature.
    ///
    /// All attempts of a delivery have the same event id and body. The request has one signature
    /// for each secret that signs at `now`. Do not follow redirects. Connect only to an address
    /// that [`EndpointUrl::check`](super::super::EndpointUrl::check) has accepted.
    ///
    /// # Errors
    /// Returns an error if the destination belongs to another endpoint, or if the event is not the
    /// event of the delivery. The function recognizes the event by its `created_at`, truncated to
    /// microseconds.
    pub fn request(
        &self,
        destination: &SignedDestination,
        event: &EventBody,
        now: Timestamp,
    ) -> Result<Request<Vec<u8>>, MismatchError> {
        if self.of.1 != destination.endpoint {
            return Err(MismatchError::Endpoint);
        }
        let [known, given] =
            [self.event_created_at, event.created_at()].map(Timestamp::floor_to_micros);
        if known != given {
            return Err(MismatchError::Event);
        }
        let mut request = event.signed_request(&destination.signer, now);
        *request.uri_mut() = destination.target.uri().clone();
        Ok(request)
    }
}
