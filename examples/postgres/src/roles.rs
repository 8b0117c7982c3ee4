//! The program's roles, one for each subcommand.

use std::error::Error;
use std::io::Write as _;

use serde_json::{Value, json};

use crate::command_line::{self, Role};
use crate::db::{self, Database};
use crate::sender;
use crate::support::flags::last_words;
use crate::support::{log, shutdown};

/// Runs the program: reads the command line, and ends with 0 when the role has ended.
pub fn main() {
    let role = command_line::read();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(run(role));
            // A name that is still being looked up holds nobody up, nor does an unread line.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(error.into()),
    };
    log::flush();
    if let Err(error) = ended {
        last_words(&format!("call-assistant-postgres: {error}"));
        std::process::exit(1);
    }
}

async fn run(role: Role) -> Result<(), Box<dyn Error>> {
    match role {
        Role::Migrate { database } => {
            db::migrate(&Database::new(&database, 1)?).await?;
        }
        Role::Sender(options) => {
            let (_trigger, stop) = shutdown::on_ctrl_c()?;
            let running = sender::start(options, stop).await?;
            say(&json!({ "ready": true }));
            running.ended().await;
        }
    }
    Ok(())
}

/// Says on standard output that a role is ready.
fn say(line: &Value) {
    let line = line.to_string();
    // Whoever has closed it does not want to know, and whoever does not read stops nobody.
    tokio::task::spawn_blocking(move || {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    });
}
