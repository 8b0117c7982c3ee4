//! The programs as they are run.
#![expect(dead_code, reason = "each has a `main`, which nothing here calls")]

#[path = "../../examples/list_calls.rs"]
pub(crate) mod list_calls;
#[path = "../../examples/rotate_secrets.rs"]
pub(crate) mod rotate_secrets;
#[path = "../../examples/send_event.rs"]
pub(crate) mod send_event;
#[path = "../../examples/serve_api/main.rs"]
pub(crate) mod serve_api;
#[path = "../../examples/sync_calls.rs"]
pub(crate) mod sync_calls;
#[path = "../../examples/verify_webhook.rs"]
pub(crate) mod verify_webhook;
