//! Serving the REST API: requests led to their answers, with cursors, pages and rate limits.
//!
//! Everything here is a plain value or a check of one. The host's store, its clock and its random
//! numbers stay with the host.
//!
//! Begin with [`exchange`]: it leads through all of it.

mod account_status;
mod cursor;
mod exchange;
mod grant;
mod page;
mod plan;
mod rate;
mod rejection;
mod stored_key;

pub use account_status::{AccountStatus, Check};
pub use cursor::{
    Cursor, CursorError, CursorKey, CursorKeys, KeyIdTakenError, MAX_LEN as MAX_CURSOR_LEN,
    Position,
};
pub use exchange::{
    AccountGranted, Admitted, Authorized, CallGranted, CallQuery, CallRow, CallsGranted,
    CallsQuery, Identified, Received, RequestHead,
};
pub use grant::Grant;
pub use page::{Page, PageQuery, RowsError};
pub use plan::{Entitlements, Feature, NotInPlanError};
pub use rate::{RateLimitError, RateLimitReason, RateWindow, RateWindows};
pub use rejection::{Rejection, RejectionReason};
pub use stored_key::{KeyDigest, KeyState, StoredKey};

/// The OpenAPI 3.1 document of the REST API and its webhooks, in JSON.
///
/// It describes what this crate does: the operations with their parameters, bounds and refusals,
/// every event, and what the specification leaves open as open. It is for documentation and for
/// tools; no path of the API serves it.
///
/// ```
/// let document: serde_json::Value = serde_json::from_str(call_assistant::rest::server::OPENAPI)?;
/// assert_eq!(document["openapi"], "3.1.0");
/// assert_eq!(document["paths"]["/v1/account"]["get"]["operationId"], "get_account");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub const OPENAPI: &str = include_str!("../openapi.json");
