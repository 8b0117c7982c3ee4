//! What the service counts of its API.

use core::fmt;
use core::time::Duration;

use http::Response;

use super::{Rejection, RejectionReason};
use crate::metrics::{Counters, Histogram, OpenMetrics, SHORT};
use crate::rest::{ErrorCode, Operation, Quota};

/// Counts requests by operation and status, rejections by code, and how long responses took.
///
/// ```
/// use core::time::Duration;
/// use call_assistant::id::RequestId;
/// use call_assistant::metrics::OpenMetrics;
/// use call_assistant::rest::server::{Received, RequestHead, ServerTally};
///
/// let mut tally = ServerTally::default();
/// let head = RequestHead::new("GET", "/v1/account/", None).with_host(b"api.example.com");
/// let result = Received::new(&head, RequestId::from_random([1; 16]));
/// # let result = result.map(|_| http::Response::new(()));
/// tally.answered(None, &result, Duration::from_millis(2)); // None: `Operation::from_path(path)`
///
/// let mut text = OpenMetrics::new(String::new());
/// tally.write(&mut text)?;
/// let text = text.end()?;
/// assert!(text.contains(r#"call_assistant_api_requests_total{operation="none",status="4xx"} 1"#));
/// assert!(text.contains(r#"call_assistant_api_rejections_total{code="resource_not_found"} 1"#));
/// # Ok::<(), std::fmt::Error>(())
/// ```
///
/// [No label](crate::metrics#labels) holds an account, a credential or a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTally {
    /// Of each operation, then of other paths, by [`STATUSES`].
    requests: [Counters<4>; 4],
    rejections: Counters<11>,
    limited: Counters<2>,
    durations: Histogram<11>,
}

const STATUSES: [&str; 4] = ["2xx", "4xx", "5xx", "other"];
const QUOTAS: [Quota; 2] = [Quota::ACCOUNT, Quota::READS];

impl Default for ServerTally {
    fn default() -> Self {
        Self {
            requests: <_>::default(),
            rejections: <_>::default(),
            limited: <_>::default(),
            durations: Histogram::new(&SHORT),
        }
    }
}

impl ServerTally {
    /// Counts a response, and how long it took: what the exchange ended with. The operation is that
    /// of the [path](Operation::from_path).
    pub fn answered<B>(
        &mut self,
        operation: Option<Operation>,
        result: &Result<Response<B>, Rejection>,
        took: Duration,
    ) {
        let (status, code) = match result {
            Ok(response) => (response.status(), None),
            Err(rejection) => (rejection.status(), Some(rejection.code())),
        };
        let row = Operation::ALL.iter().position(|one| Some(*one) == operation);
        if let Some(counters) = self.requests.get_mut(row.unwrap_or(Operation::ALL.len())) {
            counters.count(match status.as_u16() {
                200..300 => 0,
                400..500 => 1,
                500.. => 2,
                _ => 3,
            });
        }
        if let Some(code) = code {
            self.rejections.count_of(ErrorCode::KNOWN, &code);
        }
        if let Err(rejection) = result
            && let RejectionReason::RateLimited(_) = rejection.reason()
            && let Some(operation) = rejection.operation()
        {
            self.limited.count_of(&QUOTAS, &operation.quota());
        }
        self.durations.observe(took);
    }

    /// Adds what another tally has counted.
    pub fn merge(&mut self, other: &Self) {
        for (counters, more) in self.requests.iter_mut().zip(&other.requests) {
            counters.merge(more);
        }
        self.rejections.merge(&other.rejections);
        self.limited.merge(&other.limited);
        self.durations.merge(&other.durations);
    }

    /// Writes the counters.
    ///
    /// # Errors
    /// The writer fails.
    pub fn write<W: fmt::Write>(&self, text: &mut OpenMetrics<W>) -> fmt::Result {
        let operations = Operation::ALL.iter().map(|operation| operation.name()).chain(["none"]);
        let requests = operations.zip(&self.requests).flat_map(|(operation, counters)| {
            let labels = STATUSES.map(|status| [("operation", operation), ("status", status)]);
            labels.into_iter().zip(counters.counts())
        });
        text.counter("call_assistant_api_requests", "Requests that were answered.", requests)?;
        text.counter(
            "call_assistant_api_rejections",
            "Requests that were rejected.",
            self.rejections.by("code", ErrorCode::KNOWN.iter().map(ErrorCode::as_str)),
        )?;
        text.counter(
            "call_assistant_api_rate_limited",
            "Requests beyond the rate limit of their credential.",
            self.limited.by("quota", QUOTAS.map(Quota::name)),
        )?;
        self.durations.write(
            text,
            "call_assistant_api_duration_seconds",
            "Time from the request's head to its response.",
        )
    }
}
