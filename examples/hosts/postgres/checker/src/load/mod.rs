//! What happens to the host under test: customers with endpoints, their events, and owners.
//!
//! [`Customers`] has events accepted in its own transactions and by API processes. [`Receiver`] is
//! their endpoints, good and bad.

mod api;
mod customers;
mod erasures;
mod receiver;

pub use self::api::Addresses;
pub use self::customers::{Customers, DoneForCustomers};
pub use self::receiver::Receiver;
