//! The customer's side: what has arrived already, and in which order.

mod inbox;
