//! The command line: a role, and its flags.

use std::path::PathBuf;

use crate::scale::{self, Scale};
use crate::sender;
use crate::support::flags::{Flag, Flags, Help, last_words};

/// What to be.
#[derive(Debug)]
pub(crate) enum Role {
    /// Brings the database to this version, and ends.
    Migrate { database: String },
    /// Sends what is pending.
    Sender(sender::Options),
}

const USAGE: &str = "\
Usage: call-assistant-postgres ROLE [FLAGS]

  migrate   brings the database to this version, and ends
  sender    sends webhooks; any number of processes share the work

call-assistant-postgres ROLE --help lists the flags of a role.";

const DATABASE: Flag =
    Flag::value("--database", "URL", "postgresql://user@host/name [the variable DATABASE_URL]");

const MIGRATE: Help = Help {
    usage: "call-assistant-postgres migrate --database URL",
    about: "Brings the database to this version, and ends with 0.",
    flags: &[DATABASE],
    positional: 0,
};

const SENDER: Help = Help {
    usage: "call-assistant-postgres sender --database URL [--trust-ca FILE.pem]\n\
            \x20              [--allow-loopback-endpoints] [--time-scale F] [--timeout-scale F]",
    about: "Sends webhooks. Any number of senders share the work; one may stop at any time.",
    flags: &[
        DATABASE,
        Flag::value("--trust-ca", "FILE.pem", "certificates to believe beside the public ones"),
        Flag::switch(
            "--allow-loopback-endpoints",
            "webhooks to this machine too, also without TLS",
        ),
        Flag::value("--time-scale", "F", "multiplies the waits between attempts [1]"),
        Flag::value("--timeout-scale", "F", "multiplies the ten seconds of an attempt [1]"),
    ],
    positional: 0,
};

/// Reads the command line, or ends the process with what is wrong.
pub(crate) fn read() -> Role {
    let mut arguments = std::env::args().skip(1);
    let role = arguments.next().unwrap_or_default();
    let rest = arguments.collect();
    match role.as_str() {
        "migrate" => Role::Migrate { database: database(&MIGRATE, &MIGRATE.read_or_exit(rest)) },
        "sender" => Role::Sender(sender_options(&SENDER, rest)),
        "--help" | "-h" => {
            println!("{USAGE}");
            std::process::exit(0);
        }
        _ => {
            last_words(USAGE);
            std::process::exit(2);
        }
    }
}

fn sender_options(help: &Help, rest: Vec<String>) -> sender::Options {
    let flags = help.read_or_exit(rest);
    let factor = |name, most| match scale::factor(flags.text(name).unwrap_or("1"), most) {
        Ok(factor) => factor,
        Err(error) => help.exit(&format!("{name}: {error}")),
    };
    sender::Options {
        database: database(help, &flags),
        allow_loopback: flags.has("--allow-loopback-endpoints"),
        trust_ca: flags.text("--trust-ca").map(PathBuf::from),
        scale: Scale {
            waits: factor("--time-scale", scale::MOST_WAITS),
            timeouts: factor("--timeout-scale", scale::MOST_TIMEOUTS),
        },
    }
}

fn database(help: &Help, flags: &Flags) -> String {
    let variable = || std::env::var("DATABASE_URL").ok();
    match flags.text("--database").map(str::to_owned).or_else(variable) {
        Some(url) => url,
        None => help.exit("--database: which one?"),
    }
}
