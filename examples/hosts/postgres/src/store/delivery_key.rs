//! Ids of deliveries.

use std::fmt;
use std::str::FromStr;

use call_assistant::id::DeliveryId;

use crate::queue::delivery_text;
use host::store::{Done, Refused};

/// Where a delivery is: its endpoint's number and its own, which its id says.
///
/// `ended` has no index but that of endpoint and id: one more would cost every delivery that ends,
/// for a look-up that a person makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeliveryKey {
    pub(crate) endpoint: i32,
    pub(crate) id: i64,
}

impl fmt::Display for DeliveryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&delivery_text(self.endpoint, self.id))
    }
}

impl FromStr for DeliveryKey {
    type Err = Refused;

    fn from_str(text: &str) -> Done<Self> {
        let parts = text.strip_prefix("dlv_").and_then(|text| text.split_once('_'));
        let key = parts.and_then(|(endpoint, id)| {
            let endpoint = i32::from_str_radix(endpoint, 16).ok()?;
            Some(Self { endpoint, id: i64::from_str_radix(id, 16).ok()? })
        });
        // No two texts are one delivery.
        key.filter(|key| key.to_string() == text).ok_or(Refused::NotFound("delivery"))
    }
}

impl DeliveryKey {
    pub(crate) fn public(self) -> DeliveryId {
        #[allow(clippy::expect_used)]
        DeliveryId::parse(&self.to_string()).expect("digits and underscores are an id")
    }
}
