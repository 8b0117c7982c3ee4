//! Prints the OpenAPI document: `cargo run --example openapi --features service > openapi.json`.

use std::io::{self, ErrorKind, Write as _};

use call_assistant::rest::server::OPENAPI;

fn main() -> io::Result<()> {
    match io::stdout().write_all(OPENAPI.as_bytes()) {
        // The reader has closed the pipe.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
