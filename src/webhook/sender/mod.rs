//! Sends webhooks: delivers each event, retries what failed, disables endpoints that are gone.
//!
//! ```
//! use core::time::Duration;
//! use call_assistant::Timestamp;
//! use call_assistant::id::{AccountId, EventId};
//! use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
//! use call_assistant::webhook::sender::{
//!     BeginError, Delivery, DeliveryStatus, Destination, Endpoint, EndpointChange, Outcome, Target,
//! };
//! use call_assistant::webhook::{Signer, SigningSecret};
//! use http::StatusCode;
//!
//! let mut now = Timestamp::from_unix(1_767_225_600).unwrap(); // your clock
//! let (id, account) = (EventId::from_random([7; 16]), AccountId::parse("acct_1")?);
//! let version = ApiVersion::parse("2026-01-15")?;
//! let event = NewEvent::new(id, account, version, Origin::voice(), now).ping("It works.")?;
//!
//! let target = Target::parse("https://hooks.example.com/calls")?;
//! let signer = Signer::new(SigningSecret::parse("whsec_shown-once")?);
//! let mut endpoint = Endpoint::new(1, now);
//! let destination = Destination::new(&endpoint, target, signer);
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
//! A host stores two small values: a [`Delivery`] for each event and endpoint, and the health of
//! each [`Endpoint`]. Each step takes the value, what happened and the time, and changes the value,
//! which is then stored. Nothing else is kept, so a process may die at any point, and any number of
//! processes may work on the same rows. The [protocol](crate::guide::protocol#deliveries) lists
//! every rule with its reason.
//!
//! # States of a delivery
//!
//! ```text
//! accept ─────► waiting ─── begin ──► sending ─ finish ─┬─► delivered  any 2xx
//!   │            ▲  ▲                   │  │            ├─► gone       410
//!   │ endpoint   │  │  lease expires:   │  │            └─► failed     the sixth failure,
//!   │ disabled   │  │  begin again ◄────┘  │                           or a manual one
//!   ▼            │  └────── finish ────────┘
//! skipped        │  failed: after 10 s, 1 min, 10 min, 1 h, 6 h
//!   │            │  not sent, through no fault of the endpoint: at once, and not counted
//!   └────────────┤
//!     redeliver  │  failed, gone, parked, skipped: one manual attempt, for thirty days
//!                └─ parked: was pending when its endpoint was disabled
//! ```
//!
//! # The order of storing and sending
//!
//! 1. **Accept.** Store the event's bytes once, and a [`Delivery::accept`]ed delivery for each
//!    endpoint, in one write with the change that the event reports. A ping is an event like any
//!    other. Endpoints are read without a lock, so that events do not wait for each other.
//! 2. **Begin.** Read delivery and endpoint, [`Delivery::begin`], store the delivery. *Send only
//!    when that is stored*: then every other sender finds the lease.
//! 3. **Send** the [`Attempt::request`] to an address that [`Target::check`] passes, with ten
//!    seconds for everything up to the head of the response. Follow no redirect.
//! 4. **Finish.** Read both rows again, [`Delivery::finish`], [`Endpoint::record`], and store both
//!    *in one write*, with a [`LogEntry`] if you keep a log. If the endpoint is disabled by then, or
//!    has another generation, [`Delivery::park`] the delivery before you make the entry: then the
//!    log promises no attempt that will not come.
//!
//! When step 4 has [disabled](EndpointChange::Disabled) the endpoint, no pending delivery of it is
//! sent any more. Each becomes parked when it is next begun ([`BeginError::Parked`]). If people look
//! at the rows, [park](Delivery::park) all of them, after the transaction of step 4. The same holds
//! after [`Endpoint::pause`] and [`Endpoint::delete`].
//!
//! Every write is conditional: it happens only if the row still has the version that was read
//! (`UPDATE ... WHERE id = ? AND version = ?`), which the value remembers:
//! [`Delivery::if_version`], [`Endpoint::if_version`], [`Recovery::if_version`]. If a condition of a
//! step fails, nothing of the step is stored: another process was first, so read again and repeat the
//! step. In step 4, an endpoint that was read after the attempt had ended, and that does not change,
//! needs no condition. [`settle`] is step 4 for any number of attempts at once.
//!
//! | the process dies | then |
//! |---|---|
//! | before 1 is stored | nothing has happened |
//! | before 2 is stored | the delivery is still due |
//! | between 2 and 4 | the lease expires and the same attempt is made again: the receiver gets it at least once, and [`attempts`](Delivery::attempts) counts it once |
//! | after 4 | everything is stored |
//!
//! A store that cannot write two rows at once still loses no event and counts none twice. After a
//! 2xx and a 410, write the endpoint before the delivery, else the delivery before the endpoint. If
//! only the second row has changed meanwhile, read it again and [record](Endpoint::record) the same report, or finish the same attempt, again.
//! A crash between the two writes can cost one failure that is not counted.
//!
//! Find what is due by one index: rows that are `waiting` or `sending`, lowest
//! [`due`](Delivery::due) time first. Every process searches it regularly, because what a dead
//! process has left is found nowhere else. A process that holds many deliveries asks a [`Planner`]
//! which one is next.
//!
//! # The steps in SQL
//!
//! For PostgreSQL, in `READ COMMITTED`, its default. Rows are locked in the order in which [`settle`]
//! sorts them: deliveries before endpoints, each by ascending id (a text id needs `COLLATE "C"`). Rows
//! become values by [`Delivery::from_columns`] and [`Endpoint::from_columns`], which take the row's
//! number: where endpoints have text ids, as here, [`shard_of`] with `NonZeroU32::MAX` makes one. The
//! parameter `if_version` is bound as [`Delivery::if_version`] returns it: what has not changed has none,
//! and `NULL` fits no row. A row with a text that this version does not know is
//! [left as it is](DeliveryStatus#a-status-of-a-later-version).
//!
//! ```sql
#![doc = include_str!("../../guide/sql/sender/tables.sql")]
//! ```
//!
//! ## Accept
//!
//! ```sql
#![doc = include_str!("../../guide/sql/sender/accept.sql")]
//! ```
//!
//! The event is inserted *before* the endpoints are read. An endpoint that is enabled meanwhile may
//! then be read as disabled, and the event is skipped; but whoever enabled the endpoint waits for this
//! transaction, and finds the event among what was missed (see [enable](#enable)).
//!
//! Where the change is in another store, write an outbox row with it, and let a relay accept the event.
//! A relay that dies relays twice. Derive the event's id from what happened
//! ([`EventId::derived`](crate::id::EventId::derived)), and take its `created_at` from the change, not
//! from the relay. The second `INSERT` then affects no row. If `events` has a partition for each day,
//! its key is `(account_id, id, created_at)`, and the event is still one: both relays give it the same
//! day.
//!
//! ## Begin
//!
//! ```sql
#![doc = include_str!("../../guide/sql/sender/begin.sql")]
//! ```
//!
//! ## Finish
//!
//! ```sql
#![doc = include_str!("../../guide/sql/sender/finish.sql")]
//! ```
//!
//! ## Park
//!
//! For each of [`Settled::disabled`], and after [`Endpoint::pause`] and [`Endpoint::delete`]: when the
//! change of the endpoint is committed, not with it. A row that is locked is skipped, so that this waits
//! for nobody: whoever holds the lock parks it, or whoever begins it next.
//!
//! ```sql
#![doc = include_str!("../../guide/sql/sender/park.sql")]
//! ```
//!
//! ## Enable
//!
//! ```sql
#![doc = include_str!("../../guide/sql/sender/enable.sql")]
//! ```
//!
//! No event waits for this, and it waits for no lock. A transaction that read the endpoint before 1 was
//! committed had a number by then, because it had inserted its event, so 3 waits until it has ended. A
//! long transaction anywhere in the server delays 4, and nothing else. The steps of a [`Recovery`] are
//! on its page.
//!
//! ## Remind
//!
//! Every few minutes, for the owners of endpoints that stay disabled (see [alerts](#alerts)).
//!
//! ```sql
#![doc = include_str!("../../guide/sql/sender/remind.sql")]
//! ```
//!
//! ## Sweep
//!
//! ```sql
#![doc = include_str!("../../guide/sql/sender/sweep.sql")]
//! ```
//!
//! ## What breaks silently
//!
//! | mistake | costs |
//! |---|---|
//! | search or index `waiting` alone | an attempt of a sender that died is never made again: the event is lost |
//! | write without the version, of either row | a failure is counted twice, or a reset is lost |
//! | ignore the number of rows affected, or send `COMMIT` before it is known | the same |
//! | write `version() - 1` as the condition, not `if_version()` | no write matches after two transitions |
//! | write only one of the two rows, or drop a [`Report`] | an endpoint is disabled too late, or never |
//! | read the endpoint before the attempt ended | a reset is missed: it is disabled too early |
//! | send before the commit of step 2 | two senders send at once |
//! | let begun attempts wait in a queue | the lease expires while they are sent |
//! | write the log before parking | it promises attempts that do not come |
//! | park in the transaction of step 4 | deadlock: others hold deliveries and wait for the endpoint |
//! | lock endpoints before deliveries, or either out of order | deadlock |
//! | read the endpoints before the event is inserted, or in `REPEATABLE READ` | an event stays skipped, though its endpoint was enabled and got what it had missed |
//! | take an event's `created_at` from the relay | the second relay has other bytes, or is a second event |
//! | take `now` from the host after a search by the database's clock | attempts are early, or live leases are taken over |
//!
//! # Owners
//!
//! Step 2 can stay in memory where each endpoint has one owner, and then a delivery costs one write.
//! A process owns shards of endpoints ([`shard_of`]), by leases that are the host's. It reads what is
//! pending of its shards into a [`Planner`], begins each planned delivery in memory,
//! sends it, and [settles](settle) it *under the version that was read*. The stored row stays
//! `waiting`, and the owner's lease takes the place of the attempt's lease.
//!
//! If two processes both believe that they own an endpoint, the receiver may get an event twice. The
//! first result that is stored counts: the version refuses the second one. Whoever is refused reads
//! the row again and settles again, because a later 2xx still delivers. If an owner dies, the next
//! one finds the row waiting and makes the same attempt. An owner that loses shards
//! [retains](Planner::retain) the others.
//!
//! # Alerts
//!
//! The owner of an endpoint is told by an [`Alert`]:
//!
//! | alert | when |
//! |---|---|
//! | suspect | the first attempts of five deliveries in a row failed, over at least a minute |
//! | failing | 5, 10 or 15 deliveries in a row failed for good, which takes seven hours each |
//! | recovered | the first 2xx after one of these two |
//! | disabled | by a 410 or 20 failures; [`Endpoint::missed`] says what it misses |
//! | still disabled | after one day and after three: [`Endpoint::remind`] |
//! | abandoned | its event is 31 days old, and nobody could end the delivery: the host parks it |
//!
//! Each fact is one alert, also over restarts and several processes, because it comes from a write
//! of the endpoint's row, and the row's version lets one process write it. Store the alert in the
//! same transaction, and tell the owner from the stored alert. What an owner does (pause, delete,
//! enable) is no alert.
//!
//! # Clocks
//!
//! Take `now` once for each step, from one clock:
//!
//! | step | clock |
//! |---|---|
//! | accept | the host's or the database's; the event's `created_at` is that of the change |
//! | begin, park, enable, redeliver | the database's, which the statement that finds the rows returns |
//! | finish | the `now` of begin, and the time since, by a clock that is never set |
//! | any, of an owner who begins in memory | the `now` of its last look, and the time since |
//!
//! If columns keep microseconds, round every other `now` where it is taken, by
//! [`Timestamp::floor_to_micros`](crate::Timestamp::floor_to_micros).
//!
//! A stored instant that no correct clock can have written counts as reached: a lease that ends more
//! than a minute (twice [`ATTEMPT_LEASE`]) after `now`, or a due time more than twelve hours (twice the
//! longest of [`RETRY_WAITS`]) after `now`. So search for such rows, too.
//!
//! | a clock | costs |
//! |---|---|
//! | that is set back | waits and leases that are longer by as much, by twelve hours and a minute at most |
//! | that is set forward | waits that are shorter by as much; attempts in flight that are made twice; alerts that come early |
//! | far ahead, once | at most one attempt of each delivery that it stored is made early |
//!
//! No clock changes how many attempts a delivery has, or what counts against an endpoint. An event
//! whose `created_at` is ahead is kept longer by as much.
//!
//! # Plans
//!
//! [`WebhookPlan`] checks what an account may do: webhooks, redelivery and enabling need Pro,
//! recovery by program needs Business. After a downgrade, what is pending is still sent, a running
//! [`Recovery`] ends, and nothing is redelivered or enabled: check before each.

mod delivery;
mod endpoint;
mod log;
mod planner;
mod recovery;
mod schedule;
mod settle;
mod stored;
mod tally;

pub use delivery::{
    Attempt, BeginError, Delivery, DeliveryColumns, DeliveryStatus, FailureReason, Outcome,
    RedeliverError,
};
pub use endpoint::{
    AbandonedReason, AddressError, Alert, Destination, DisabledReason, Endpoint, EndpointChange,
    EndpointColumns, MAX_URL_LEN, Report, Target, TargetError, check_public, shard_of,
};
pub use log::{Ended, Excerpt, LogEntry, MAX_EXCERPT_LEN};
pub use planner::{Pending, Planner, SenderLimits};
pub use recovery::{
    MissedDeliveries, MissedSearch, PlanError, RecoverError, Recovery, RecoveryBy, RecoveryStatus,
    WebhookPlan,
};
pub use schedule::{
    ATTEMPT_LEASE, ATTEMPT_TIMEOUT, FAILURES_TO_DISABLE, FAILURES_TO_WARN,
    FIRST_FAILURES_TO_SUSPECT, LONGEST_DELIVERY, MAX_ATTEMPTS, REMINDER_DAYS, RETENTION,
    RETRY_WAITS, SUSPECT_SPAN, jitter, oldest_kept,
};
pub use settle::{Settled, settle};
pub use stored::{ColumnError, MismatchError};
pub use tally::{Gauges, SenderTally};
