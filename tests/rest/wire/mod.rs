//! What both sides say: operations, errors, keys, and the document that describes them.

mod api_keys;
mod errors;
mod openapi;
mod operations;
