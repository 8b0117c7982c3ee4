//! Sends webhooks: delivers each event, retries failed attempts, and disables endpoints that fail.
//!
//! ```
//! use core::time::Duration;
//! use call_assistant::Timestamp;
//! use call_assistant::id::{AccountId, EventId};
//! use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
//! use call_assistant::webhook::sender::{
//!     BeginError, Delivery, DeliveryStatus, EndpointChange, EndpointHealth, EndpointUrl, Outcome,
//!     SignedDestination,
//! };
//! use call_assistant::webhook::{Signer, SigningSecret};
//! use http::StatusCode;
//!
//! let mut now = Timestamp::from_unix(1_767_225_600).unwrap(); // your clock
//! let (id, account) = (EventId::from_random([7; 16]), AccountId::parse("acct_1")?);
//! let version = ApiVersion::parse("2026-01-15")?;
//! let event = NewEvent::new(id, account, version, Origin::voice(), now).ping("It works.")?;
//!
//! let target = EndpointUrl::parse("https://hooks.example.com/calls")?;
//! let signer = Signer::new(SigningSecret::parse("whsec_shown-once")?);
//! let mut endpoint = EndpointHealth::new(1, now);
//! let destination = SignedDestination::new(&endpoint, target, signer);
//!
//! // 1. Accept, and store the delivery together with the event's bytes.
//! let mut delivery = Delivery::accept(&event, &endpoint, now);
//!
//! // 2. Begin, and store. From now on nobody else sends it.
//! let attempt = delivery.begin(&endpoint, now)?;
//! assert!(matches!(delivery.begin(&endpoint, now), Err(BeginError::Leased { .. })));
//!
//! // 3. Send. Here the endpoint does not answer in time.
//! let request = attempt.request(&destination, &event, now)?;
//! assert_eq!(request.uri(), "https://hooks.example.com/calls");
//! now = attempt.deadline();
//!
//! // 4. Finish, record, and store both. The next attempt follows ten seconds later.
//! let report = delivery.finish(&attempt, Outcome::TimedOut, now)?;
//! assert_eq!(endpoint.record(report, now)?, EndpointChange::Updated); // a first attempt failed
//! let next = now.saturating_add(Duration::from_secs(10));
//! assert_eq!((delivery.status(), delivery.due(now)), (DeliveryStatus::Waiting, Some(next)));
//!
//! // The sender of the second attempt dies. When its lease expires, another makes the attempt.
//! let lost = delivery.begin(&endpoint, next)?;
//! now = delivery.due(next).unwrap();
//! let attempt = delivery.begin(&endpoint, now)?;
//! assert_eq!((lost.number(), attempt.number()), (2, 2));
//!
//! let report = delivery.finish(&attempt, Outcome::Answered(StatusCode::NO_CONTENT), now)?;
//! assert_eq!(endpoint.record(report, now)?, EndpointChange::Updated); // and that is over
//! assert_eq!((delivery.status(), delivery.attempts()), (DeliveryStatus::Delivered, 2));
//!
//! // The first sender was not dead. What it reports now changes nothing.
//! let report = delivery.finish(&lost, Outcome::Reset, now)?;
//! assert!(report.is_late());
//! # let _ = endpoint.record(report, now)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A host stores a small [`Delivery`] for each event and endpoint, and a small [`EndpointHealth`]
//! for each endpoint. The method for each step takes one of these values, the time and, after an
//! attempt, the attempt's outcome. The method changes the value, and the host then stores the
//! value. The crate keeps no other state. A process may therefore die at any point, and any number
//! of processes may work on the same rows. The [protocol](crate::guide::protocol#deliveries) lists
//! every rule for deliveries.
//!
//! # States of a delivery
//!
//! ```text
//! accept ─────► waiting ─── begin ──► sending ─ finish ─┬─► delivered  any 2xx
//!   │            ▲  ▲                   │  │            ├─► gone       410
//!   │ endpoint   │  │  lease expires:   │  │            └─► failed     the last failure,
//!   │ disabled   │  │  begin again ◄────┘  │                           or a manual one
//!   ▼            │  └────── finish ────────┘
//! skipped        │  failed: after the next of RETRY_WAITS
//!   │            │  not sent, through no fault of the endpoint: at once, and not counted
//!   └────────────┤
//!     redeliver  │  failed, gone, parked, skipped: one manual attempt, for thirty days
//!                └─ parked: was pending when its endpoint was disabled
//! ```
//!
//! [Storing](crate::guide::storing) describes the order of a host's steps, the mistakes that cause
//! no error, and the clock to use. The [protocol](crate::guide::protocol#leases-and-clocks)
//! describes the cost of wrong clocks. [`settle`] performs step 4 of the first example for any
//! number of attempts. A [`Planner`] decides which delivery is sent next. A [`WebhookPlan`] defines
//! what an account may do. Check this plan before a redelivery, before an endpoint is enabled, and
//! before a [`Recovery`].

mod delivery;
mod endpoint;
mod log;
mod metrics;
mod planner;
mod recovery;
mod schedule;
mod settle;
mod stored;

pub use delivery::{
    Attempt, BeginError, Delivery, DeliveryColumns, DeliveryStatus, FailureReason, Outcome,
    Outlook, RedeliverError,
};
pub use endpoint::{
    AbandonedReason, AddressError, Alert, AttemptReport, DisabledReason, EndpointChange,
    EndpointColumns, EndpointHealth, EndpointUrl, EndpointUrlError, SignedDestination, shard_of,
};
pub use log::{EndedAttempt, Excerpt, LogEntry};
pub use metrics::{SenderGauges, SenderMetrics};
pub use planner::{Added, DueDelivery, DueKind, LimitOf, Planner, Rate, SenderLimits};
pub use recovery::{
    PlanError, RecoverError, Recovery, RecoveryBy, RecoveryFilter, RecoveryStatus, RecoveryStep,
    WebhookPlan,
};
pub use schedule::{
    ATTEMPT_LEASE, ATTEMPT_TIMEOUT, FAILURES_TO_DISABLE, FAILURES_TO_WARN,
    FIRST_FAILURES_TO_SUSPECT, LONGEST_DELIVERY, MAX_ATTEMPTS, REMINDER_DAYS, RETENTION,
    RETRY_WAITS, RetrySchedule, SUSPECT_SPAN, oldest_kept,
};
pub use settle::{Settled, settle};
pub use stored::{ColumnError, MismatchError};
