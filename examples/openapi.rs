//! Prints the OpenAPI document: `cargo run --example openapi > openapi.json`.

use call_assistant::service::OPENAPI;

fn main() {
    print!("{OPENAPI}");
}
