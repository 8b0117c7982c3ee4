//! Events: the bodies of deliveries, read and written.
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
//! // If `event.id` is stored already, stop here. Otherwise:
//! match event.data {
//!     EventData::CallEnded(call) => println!("{} has ended", call.id),
//!     EventData::Ping { message, .. } => println!("{message}"),
//!     EventData::Unreadable { error, .. } => println!("kept for later: {error}"),
//!     _ => {} // not handled here: acknowledge it all the same
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! For each type of event, [`EventType`] returns when the service sends the event, and returns a
//! sample of the event's data. [`EventData`] contains the data of each type.
//!
//! # Receiving
//!
//! An [`Event`] is read from a verified body. If this version does not know the event's type or the
//! form of its data, the whole event is kept. No event is lost, and no event makes the receiver
//! fail. The [protocol](crate::guide::protocol) defines each field of an event.
//!
//! # Sending
//!
//! [`NewEvent`] has a method for each type of event. The method writes the event exactly once, as
//! an [`EventBody`]. In every attempt, sign and send the stored bytes of this body. [`UsageWatch`]
//! decides whether an event reports the usage, and [`NameSource`] decides whether events report a
//! contact.

mod body;
mod compose;
mod data;
mod envelope;
mod received;
mod required_fields;
mod usage;

pub use body::EventBody;
pub use compose::{NameSource, NewEvent, NewEventError};
pub use data::{EventData, EventType, RawEventData};
pub use envelope::{ApiVersion, Origin, OriginSource};
pub use received::{Event, EventError};
pub use usage::UsageWatch;
