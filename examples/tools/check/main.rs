//! The conformance kit at a terminal: `check SIDE ...`. `README.md` is its page.

use std::process::ExitCode;

fn main() -> ExitCode {
    tools::check::command::check()
}
