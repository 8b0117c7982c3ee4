//! What travels: the resources of the REST API and the objects inside events.
//!
//! The same types serve both ends, so each is written as it is read. Fields are public and a type
//! may get more of them, so values are made with `new` and then filled in.
//!
//! | resource | fields given by the specification | where |
//! |---|---|---|
//! | [`Account`] | all | `GET /v1/account` |
//! | [`Call`] | all | `GET /v1/calls/{call_id}`, `call.ended` |
//! | [`CallList`] | all | `GET /v1/calls` |
//! | [`TransferredCall`] | a call's, and two more without their types | `call.transferred` |
//! | [`Appointment`] | only a `status` | `appointment.*` |
//! | [`Contact`] | none | `contact.*` |

mod account;
mod call;
mod list;
mod objects;

pub use account::Account;
pub use call::{Call, CallCaller};
pub use list::CallList;
pub use objects::{Appointment, AppointmentStatus, Contact, TransferredCall};
