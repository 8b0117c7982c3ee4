//! One attempt: its number, its deadline, and the request that goes out.

use http::{Method, Request};
use serde::{Deserialize, Deserializer, Serialize};

use super::schedule::ATTEMPTS;
use super::target::Target;
use crate::Timestamp;
use crate::id::EventId;
use crate::webhook::Signer;
use crate::webhook::testing::{self, HeaderTextError};

/// An attempt that has begun. It goes back to [`Delivery::finish`](super::Delivery::finish) with
/// its outcome.
///
/// It serialises, for hosts whose requests are sent by another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[must_use = "send it, and finish the delivery with its outcome"]
pub struct Attempt {
    #[serde(deserialize_with = "number")]
    pub(super) number: u8,
    pub(super) by_hand: bool,
    pub(super) began_at: Timestamp,
    pub(super) deadline: Timestamp,
    /// The delivery's version when this began: who finishes it must still hold that.
    pub(super) lease: u32,
    /// The endpoint's, when this began.
    pub(super) generation: u32,
}

impl Attempt {
    /// Which attempt of the six this is, from 1. A redelivery by hand has only one.
    #[must_use]
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Whether this is a redelivery by hand.
    #[must_use]
    pub fn is_by_hand(&self) -> bool {
        self.by_hand
    }

    /// When it began.
    #[must_use]
    pub fn began_at(&self) -> Timestamp {
        self.began_at
    }

    /// When it is over, if the head of the response has not come.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        self.deadline
    }

    /// The request that goes out: a POST of the stored bytes, signed now, with the secrets of now.
    ///
    /// Each attempt of a delivery has its own time and signature, and the same event id and body.
    /// The endpoint's own headers come along, and never replace one of ours. Do not follow
    /// redirects, and connect to an address that [`Target::check`] has passed.
    ///
    /// # Errors
    /// The event's type is not the text of a header.
    pub fn request<B: AsRef<[u8]>>(
        &self,
        target: &Target,
        event: &EventId,
        event_type: &str,
        signer: &Signer,
        body: B,
        now: Timestamp,
    ) -> Result<Request<B>, HeaderTextError> {
        let signed =
            testing::signed_request(signer, event_type, event.as_str(), body.as_ref(), now)?;
        let mut headers = signed.into_parts().0.headers;
        for name in target.headers().keys() {
            // Asked before any of them is put in: a name may come with several values.
            if !headers.contains_key(name) {
                for value in target.headers().get_all(name) {
                    headers.append(name, value.clone());
                }
            }
        }
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = target.uri().clone();
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// Any other would make of its failure an end, or a wait that is not its own.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    match u8::deserialize(deserializer)? {
        number @ 1..=ATTEMPTS => Ok(number),
        _ => Err(serde::de::Error::custom(format_args!("number is not from 1 to {ATTEMPTS}"))),
    }
}
