//! One attempt: its number, its deadline, and the request that goes out.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// An attempt that has begun. It goes back to [`Delivery::finish`](super::Delivery::finish) with
/// its outcome.
///
/// It serialises, for hosts whose requests are sent by another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[must_use = "send it, and finish the delivery with its outcome"]
pub struct Attempt {
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
}
