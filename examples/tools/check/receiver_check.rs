//! `check receiver` under its older name.

use std::process::ExitCode;

fn main() -> ExitCode {
    tools::check::command::receiver_check()
}
