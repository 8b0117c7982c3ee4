//! The resources of the REST API and the objects inside events.
//!
//! ```
//! use call_assistant::model::Call;
//!
//! let call = Call::from_json(
//!     br#"{"id":"call_8fK2","caller":{},"started_at":"2026-03-01T09:30:00Z",
//!         "appointment_ids":[],"created_at":"2026-03-01T09:34:10Z"}"#,
//! )?;
//! assert_eq!(call.summary, None);
//! # Ok::<(), call_assistant::json::ParseError>(())
//! ```
//!
//! Customers and the service use the same types. The fields are public, and a later version may add
//! fields. Therefore create a value with `new` and then set its fields.
//!
//! | resource | fields given by the [protocol](crate::guide::protocol) | used in |
//! |---|---|---|
//! | [`Account`] | all | `GET /v1/account` |
//! | [`Call`] | all | `GET /v1/calls/{call_id}`, events |
//! | [`CallList`] | all | `GET /v1/calls` |
//! | [`TransferredCall`] | the fields of a call, and two fields without a type | events |
//! | [`Appointment`] | only `status` | events |
//! | [`Contact`] | none | events |

mod account;
mod call;
mod list;
mod objects;

pub use account::Account;
pub use call::{Call, CallCaller};
pub use list::{CallList, ListedCall, UnreadableCall};
pub use objects::{Appointment, AppointmentStatus, Contact, TransferredCall};
