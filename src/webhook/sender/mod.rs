//! Sending webhooks: deliveries that are retried, endpoints that are disabled, nothing lost.
//!
//! Two small values are stored: a [`Delivery`] for each event and endpoint, and an [`Endpoint`]'s
//! health. Everything that happens to them is a call that takes the value, what happened and the
//! time, and leaves the value to be stored. Nothing is kept in between, so a process may die
//! anywhere, and any number of them may work on the same rows.
//!
//! # One delivery's life
//!
//! ```text
//! accept ─────► waiting ─── begin ──► sending ─ finish ─┬─► delivered  any 2xx
//!   │            ▲  ▲                   │  │            ├─► gone       410
//!   │ endpoint   │  │  lease runs out:  │  │            └─► failed     the sixth failure,
//!   │ disabled   │  │  begin again ◄────┘  │                           or one by hand
//!   ▼            │  └────── finish ────────┘
//! skipped        │  failed: after 10 s, 1 min, 10 min, 1 h, 6 h
//!   │            │  not sent, by a fault of our own: at once, and not counted
//!   └────────────┤
//!     redeliver  │  failed, gone, parked, skipped: one attempt by hand, for thirty days
//!                └─ parked: was pending when its endpoint was disabled
//! ```
//!
//! # The order of storing and sending
//!
//! 1. **Accept.** Store the event's bytes, under the one id that all endpoints will see, and a
//!    [`Delivery::accept`]ed delivery for each endpoint, in one write with the change that the event
//!    is about. Only then has it happened. A ping is accepted like any other event. Where an
//!    endpoint no longer has the version that was read, read it again and accept anew: if it was
//!    enabled meanwhile, its owner has been told already what it missed.
//! 2. **Begin.** Read delivery and endpoint, [`Delivery::begin`], store the delivery. *Only when
//!    that is stored*, send: whoever else comes finds the lease.
//! 3. **Send** what [`Attempt::request`] makes, to an address that [`Target::check`] passes, with
//!    ten seconds for everything up to the head of the response, following no redirect.
//! 4. **Finish.** Read both rows again, [`Delivery::finish`], [`Endpoint::record`], and store both
//!    *in one write*, with a [`LogEntry`] if you keep a log. Where the endpoint has been disabled
//!    meanwhile, or disabled and enabled, begin what is still waiting before the entry is made: that
//!    parks it, and the log speaks of no attempt that will not come.
//!
//! When that has [disabled](EndpointChange::Disabled) the endpoint, its pending deliveries are as good as
//! parked: none is sent any more. Each is stored so when it is next begun, which [`BeginError::Parked`]
//! says. A host whose customers look at the rows begins them all at once.
//!
//! Every write is conditional: it happens only where the rows still have the `version` that was read
//! (`UPDATE ... WHERE id = ? AND version = ?`), in step 4 both rows, also the one that did not
//! change. Where they have not, somebody else was first: read again and do the step again; each
//! step knows what to make of a row that has moved on.
//!
//! | the process dies | what then |
//! |---|---|
//! | before 1 is stored | nothing has happened |
//! | before 2 is stored | the delivery is still due |
//! | between 2 and 4 | the lease runs out, and the same attempt is made again: the receiver may see it twice, never not at all |
//! | after 4 | nothing: it is all there |
//!
//! A store that cannot write two rows at once still loses no event and counts none twice, if it
//! stores what forgives or ends first, and what counts after: on [`EndpointChange::Recovered`] and on
//! [`DisabledReason::Gone`] the endpoint before the delivery, else the delivery before the endpoint. Where
//! only the second of them has moved, read that one again and [record](Endpoint::record) the same
//! report, or finish the same attempt, again: the first is done. What a crash in between can cost is
//! then one failure that is not counted.
//!
//! Webhooks need a plan that includes [`Feature::Webhooks`](crate::rest::server::Feature::Webhooks), which a
//! host asks for when an endpoint is registered and when an event is accepted; redelivering what
//! was [`MissedDeliveries`] by program rather than from the dashboard needs
//! [`Feature::Recovery`](crate::rest::server::Feature::Recovery).
//!
//! What is to be done is found by one index: rows that are `waiting` or `sending` and whose
//! [`due`](Delivery::due) time has come, lowest first. Every process looks there now and then, for
//! what one that died has left is found nowhere else. A process with many of them at hand asks a
//! [`Planner`] which is next.
//!
//! ```
//! use core::time::Duration;
//! use call_assistant::webhook::sender::{
//!     EndpointChange, Delivery, Endpoint, BeginError, Outcome, Reach, Status, Step, Target,
//! };
//! use call_assistant::id::EventId;
//! use call_assistant::Timestamp;
//! use call_assistant::webhook::{Signer, SigningSecret};
//! use http::StatusCode;
//!
//! let mut now = Timestamp::from_unix(1_767_225_600).unwrap();
//! let target = Target::parse("https://hooks.example.com/calls", Reach::Public)?;
//! let signer = Signer::new(SigningSecret::parse("whsec_shown-once")?);
//! let mut endpoint = Endpoint::new(now);
//!
//! // 1. Accept. The body's bytes are stored as they are: every attempt sends these.
//! let event = EventId::from_random([7; 16]);
//! let body = br#"{"id":"evt_07...","type":"ping"}"#;
//! let mut delivery = Delivery::accept(now, &endpoint, now);
//!
//! // 2. Begin, and store. Now nobody else sends it.
//! let attempt = delivery.begin(&endpoint, now)?;
//! assert!(matches!(delivery.begin(&endpoint, now), Err(BeginError::Leased { .. })));
//!
//! // 3. Send. It takes ten seconds and comes to nothing.
//! let request = attempt.request(&target, &event, "ping", &signer, body, now)?;
//! assert_eq!(request.uri(), "https://hooks.example.com/calls");
//! assert!(request.headers().contains_key("x-service-signature"));
//! now = attempt.deadline();
//!
//! // 4. Finish, and store both.
//! let finished = delivery.finish(&attempt, Outcome::TimedOut, now);
//! let next = now.saturating_add(Duration::from_secs(10));
//! assert_eq!(finished.step, Step::Again { at: next });
//! assert_eq!(endpoint.record(finished.report, now), EndpointChange::Unchanged);
//!
//! // The next sender dies in the middle of it. When its lease is over, another begins the same
//! // attempt.
//! let lost = delivery.begin(&endpoint, next)?;
//! now = delivery.due().unwrap();
//! let attempt = delivery.begin(&endpoint, now)?;
//! assert_eq!((lost.number(), attempt.number()), (2, 2));
//!
//! let finished = delivery.finish(&attempt, Outcome::Answered(StatusCode::NO_CONTENT), now);
//! assert_eq!(finished.step, Step::Delivered);
//! assert_eq!(endpoint.record(finished.report, now), EndpointChange::Unchanged); // no failures to forget
//! assert_eq!((delivery.status(), delivery.attempts()), (Status::Delivered, 2));
//!
//! // The first of them was not dead after all. What it says now changes nothing.
//! let finished = delivery.finish(&lost, Outcome::Reset, now);
//! assert_eq!(finished.step, Step::Late);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod attempt;
mod delivery;
mod endpoint;
mod log;
mod outcome;
mod planner;
mod retention;
mod schedule;
mod target;

pub use address::{AddressError, Block, is_public};
pub use attempt::Attempt;
pub use delivery::{BeginError, Delivery, Finished, RedeliverError, Status, Step};
pub use endpoint::{
    DisabledReason, Endpoint, EndpointChange, FAILURES_TO_DISABLE, Report, WARNINGS,
};
pub use log::{Excerpt, KEPT_BODY, LogEntry};
pub use outcome::{Outcome, ParseOutcomeError, Verdict};
pub use planner::{Limits, Planned, Planner};
pub use retention::{MissedDeliveries, RETENTION, is_kept};
pub use schedule::{ATTEMPT_TIMEOUT, ATTEMPTS, LEASE, LONGEST, WAITS, jitter, wait_after};
pub use target::{MAX_URL_LEN, Reach, ReservedHeader, Target, TargetError};
