//! Sending webhooks: deliveries that are retried, endpoints that are disabled, nothing lost.

mod address;
mod attempt;
mod endpoint;
mod life;
mod outcome;
mod retention;
mod schedule;
mod target;

pub use address::{Block, NotPublic, is_public};
pub use attempt::Attempt;
pub use endpoint::{Change, Endpoint, FAILURES_TO_DISABLE, Reason, Report, WARNINGS};
pub use life::{Delivery, Finished, NotBegun, NotRedelivered, Status, Step};
pub use outcome::{NotAnOutcome, Outcome, Verdict};
pub use retention::{Missed, RETENTION, is_kept};
pub use schedule::{ATTEMPT_TIMEOUT, ATTEMPTS, LEASE, LONGEST, WAITS, jitter, wait_after};
pub use target::{MAX_URL_LEN, NotATarget, Reach, Target};
