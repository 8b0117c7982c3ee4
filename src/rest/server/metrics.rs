//! The counters of the service's API.

use core::time::Duration;

use http::{Response, StatusCode};

use super::{Rejection, RejectionReason};
use crate::metrics::{Counters, Histogram, Label, label, side_metrics};
use crate::rest::{ErrorCode, Operation, Quota};

side_metrics! {
    /// Counters of requests by operation and status, counters of rejections by code, counters of
    /// rate-limited requests by quota, and durations of responses.
    ///
    /// ```
    /// use core::time::Duration;
    /// use call_assistant::id::RequestId;
    /// use call_assistant::metrics::OpenMetrics;
    /// use call_assistant::rest::server::{Received, RequestHead, ApiMetrics};
    ///
    /// let mut metrics = ApiMetrics::default();
    /// let head = RequestHead::new("GET", "/v1/account/", None).with_host(b"api.example.com");
    /// let result = Received::new(&head, RequestId::from_random([1; 16]));
    /// # let result = result.map(|_| http::Response::new(()));
    /// metrics.answered(None, &result, Duration::from_millis(2)); // None: `Operation::from_path(path)`
    ///
    /// let mut text = OpenMetrics::new(String::new());
    /// metrics.write(&mut text)?;
    /// let text = text.end()?;
    /// assert!(text.contains(r#"call_assistant_api_requests_total{operation="none",status="4xx"} 1"#));
    /// assert!(text.contains(r#"call_assistant_api_rejections_total{code="resource_not_found"} 1"#));
    /// # Ok::<(), std::fmt::Error>(())
    /// ```
    ///
    /// [No label](crate::metrics#labels) contains an account, a credential or a path.
    pub struct ApiMetrics {
        requests: Counters<Request> = "call_assistant_api_requests", "Requests that were answered.";
        rejections: Counters<Code> = "call_assistant_api_rejections", "Requests that were rejected.";
        limited: Counters<Limit> = "call_assistant_api_rate_limited",
            "Requests beyond the rate limit of their credential.";
        durations: Histogram<11> = "call_assistant_api_duration_seconds",
            "Time from the request's head to its response.";
    }
}

impl ApiMetrics {
    /// Counts the result of an exchange and its duration. [`Operation::from_path`] returns the operation.
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
        self.requests.count(Request(operation, status.into()));
        if let Some(code) = ErrorCode::KNOWN.iter().find(|known| code.as_ref() == Some(known)) {
            self.rejections.count(Code(code));
        }
        if let Err(rejection) = result
            && let RejectionReason::RateLimited(_) = rejection.reason()
            && let Some(operation) = rejection.operation()
        {
            self.limited.count(Limit(operation.quota()));
        }
        self.durations.observe(took);
    }
}

label!(Limit = "quota", Quota, [Quota::ACCOUNT, Quota::READS], Quota::name);

label! {
    StatusClass = "status", StatusCode {
        status if status.is_success() => "2xx",
        status if status.is_client_error() => "4xx",
        status if status.as_u16() >= 500 => "5xx",
        _ => "other",
    }
}

/// The operation and the status of a request. For an unknown path, the operation is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request(Option<Operation>, StatusClass);

impl Label for Request {
    const N: usize = (Operation::ALL.len() + 1) * StatusClass::N;
    type Counts = [u64; Self::N];

    fn all() -> impl Iterator<Item = Self> {
        let operations = Operation::ALL.iter().copied().map(Some).chain([None]);
        operations
            .flat_map(|operation| StatusClass::all().map(move |status| Self(operation, status)))
    }

    fn labels(self) -> impl AsRef<[(&'static str, &'static str)]> {
        let Self(operation, StatusClass(status)) = self;
        [("operation", operation.map_or("none", Operation::name)), ("status", status)]
    }
}

/// A code that this version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Code(&'static ErrorCode);

impl Label for Code {
    const N: usize = ErrorCode::KNOWN.len();
    type Counts = [u64; Self::N];

    fn all() -> impl Iterator<Item = Self> {
        ErrorCode::KNOWN.iter().map(Self)
    }

    fn labels(self) -> impl AsRef<[(&'static str, &'static str)]> {
        [("code", self.0.as_str())]
    }
}
