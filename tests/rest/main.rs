//! The REST API: what travels, the service's side, and the customer's, in virtual time.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)]

mod client;
mod server;
mod testing;
mod wire;

use call_assistant::Timestamp;
use call_assistant::id::RequestId;
use call_assistant::rest::CallFilter;
use proptest::prelude::*;
use support::{dice, nanos as at, seconds as second};

/// Some request's id.
fn request_id() -> RequestId {
    RequestId::from_random([9; 16])
}

/// The filter with these bounds.
fn within(after: Option<Timestamp>, before: Option<Timestamp>) -> CallFilter {
    let filter = after.into_iter().fold(CallFilter::new(), CallFilter::with_created_after);
    before.into_iter().fold(filter, CallFilter::with_created_before)
}

fn instants() -> impl Strategy<Value = Timestamp> {
    let range = Timestamp::MIN.unix_seconds()..=Timestamp::MAX.unix_seconds();
    (range, 0..1_000_000_000_u32)
        .prop_map(|(seconds, nanos)| Timestamp::from_parts(seconds, nanos).unwrap())
}

/// The filters of which a list can be.
fn filters() -> impl Strategy<Value = CallFilter> {
    [(); 2].map(|()| proptest::option::of(instants())).prop_map(|[one, other]| match (one, other) {
        (Some(one), Some(other)) => within(Some(one.min(other)), Some(one.max(other))),
        (one, other) => within(one, other),
    })
}
