//! Events: what a delivery's body says, read and written.
//!
//! | type | emitted when | in `data` | [`EventData`] |
//! |---|---|---|---|
//! | `call.ended` | a call ends and its summary is ready | `object`: a [`Call`] | `CallEnded` |
//! | `call.transferred` | the assistant transfers a call to a person | `object`: a [`TransferredCall`] | `CallTransferred` |
//! | `appointment.created` | a new appointment is committed | `object`: an [`Appointment`] | `AppointmentCreated` |
//! | `appointment.updated` | one is edited, moved or restored | `object`: an [`Appointment`] | `AppointmentUpdated` |
//! | `appointment.cancelled` | one is cancelled | `object`: it, with status `cancelled` | `AppointmentCancelled` |
//! | `contact.created` | a curated contact is added | `object`: a [`Contact`] | `ContactCreated` |
//! | `contact.updated` | a curated contact changes | `object`: a [`Contact`] | `ContactUpdated` |
//! | `usage.threshold_reached` | the account reaches 75 % of its included minutes | counters | `UsageThresholdReached` |
//! | `ping` | the account's owner triggers a test | `message` | `Ping` |
//! | any other | | anything | `Unknown` |
//!
//! # Receiving
//!
//! An [`Event`] comes out of a verified body. A type that is not known, or one whose data has
//! changed its form, is an event like any other and kept whole: nothing that arrives fails the
//! receiver, or is lost.
//!
//! ```
//! # use call_assistant::id::{AccountId, EventId};
//! # use call_assistant::Timestamp;
//! # use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
//! # use call_assistant::webhook::{Signer, SigningSecret, Verifier};
//! use call_assistant::webhook::event::EventData;
//!
//! # let secret = SigningSecret::parse("whsec_test")?;
//! # let now = Timestamp::from_unix(1_767_225_600).unwrap();
//! # let account = AccountId::parse("acct_1")?;
//! # let version = ApiVersion::parse("2026-01-15")?;
//! # let id = EventId::parse("evt_1")?;
//! # let request = NewEvent::new(id, account, version, Origin::voice(), now)
//! #     .ping("It works.")?
//! #     .signed_request(&Signer::new(secret.clone()), now);
//! # let verifier = Verifier::new(secret);
//! # let (headers, body) = (request.headers(), request.body());
//! let event = verifier.verify(headers, body, now)?.event()?;
//! // Seen before? `event.id` says. Then:
//! match event.data {
//!     EventData::CallEnded(call) => println!("{} has ended", call.id),
//!     EventData::Ping(ping) => println!("{}", ping.message),
//!     EventData::Unreadable(drifted) => println!("kept for later: {}", drifted.error()),
//!     _ => {} // nothing of ours: acknowledge it all the same
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Sending
//!
//! [`NewEvent`] makes the nine types and writes each exactly once, as an [`EventBody`]: what is
//! stored is what is signed and sent. [`UsageWatch`] and [`ApprovedContact`] decide whether there is
//! an event at all.
//!
//! [`Call`]: crate::model::Call
//! [`TransferredCall`]: crate::model::TransferredCall
//! [`Appointment`]: crate::model::Appointment
//! [`Contact`]: crate::model::Contact

mod body;
mod compose;
mod data;
mod envelope;
mod event;
mod read;
mod usage;

pub use body::EventBody;
pub use compose::{ApprovedContact, NameSource, NewEvent, NewEventError};
pub use data::{EventData, EventType, Ping, UnknownData, UnreadableData};
pub use envelope::{ApiVersion, ApiVersionError, Origin, OriginSource};
pub use event::{Event, EventError};
pub use usage::{ThresholdReached, UsageWatch};
