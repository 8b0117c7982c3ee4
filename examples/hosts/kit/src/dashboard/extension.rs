//! What a host adds to its dashboard.

use std::future::Future;

use serde_json::Value;

use super::Asked;
use crate::http::answer::{Answered, Error};
use crate::store::scope::Operator;

/// Routes of a host's own, and what the page shows of them. `()` is none.
pub trait Extension: Clone + Send + Sync + 'static {
    /// The first segments of its paths.
    const PATHS: &'static [&'static str];

    /// Answers an operator's request to one of its paths.
    fn route(&self, by: Operator, asked: &Asked<'_>) -> impl Future<Output = Answered> + Send;

    /// Returns what the page shows of it, under `sandbox`.
    fn shown(&self) -> Value;
}

impl Extension for () {
    const PATHS: &'static [&'static str] = &[];

    async fn route(&self, _: Operator, _: &Asked<'_>) -> Answered {
        Err(Error::NoSuchPath)
    }

    fn shown(&self) -> Value {
        Value::Null
    }
}
