//! Explains what the code implements, in long form. It holds no code.
//!
//! ```text
//! GET /v1/calls          ->  200, 4xx or 500, always in one JSON form
//! POST your endpoint     <-  an event, signed with X-Service-Signature
//! ```
//!
//! | page | content |
//! |---|---|
//! | [`protocol`] | the REST API and the webhooks: every rule, every limit, and why it is so |

pub mod protocol {
    #![doc = include_str!("protocol.md")]
}
