//! The command line: a role, and its flags.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::counted::Counted;
use crate::db::Address;
use crate::key_ring::KeyRing;
use crate::sender;
use host::dashboard::{Access, Token};
use host::flags::{Flag, Flags, Help, last_words};
use host::scale::{self, Scale};

/// What to be.
#[derive(Debug)]
pub(crate) enum Role {
    /// Brings the database to this version, and ends.
    Migrate { database: Address },
    /// Answers the public API and the dashboard.
    Api { serving: Serving, database: Address, ring: KeyRing },
    /// Sends what is pending.
    Sender { options: sender::Options, metrics: Option<SocketAddr> },
    /// Both in one process.
    All { serving: Serving, sending: sender::Options },
    /// Both, on a database of its own.
    Demo { serving: Serving, sending: sender::Options },
    /// Erases an account, or a number from it, and ends.
    Erase { database: Address, account: String, number: Option<String> },
    /// Seals secrets with the newest key, and ends.
    RotateKeys { database: Address, ring: KeyRing },
    /// Makes a line of a key ring, and ends.
    KeyGen { number: u8 },
}

/// How to answer requests.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    pub(crate) listen: SocketAddr,
    pub(crate) dashboard: SocketAddr,
    pub(crate) access: Access,
    pub(crate) data: Option<PathBuf>,
    pub(crate) allow_loopback: bool,
    pub(crate) metrics: Option<SocketAddr>,
}

const USAGE: &str = "\
Usage: call-assistant-postgres ROLE [FLAGS]

  demo         all of it, on a PostgreSQL server of its own: for a first look
  migrate      brings the database to this version, and ends
  api          answers the public API and the dashboard
  sender       sends webhooks; any number of processes share the work
  all          api and sender in one process
  erase        erases an account, or one caller's number from it
  rotate-keys  seals signing secrets with the newest key of the ring
  keygen N     prints key N of a key ring

call-assistant-postgres ROLE --help lists the flags of a role.";

/// The environment variable of the operator's token.
const TOKEN: &str = "OPERATOR_TOKEN";

const DATABASE: Flag =
    Flag::value("--database", "URL", "postgresql://user@host/name [the variable DATABASE_URL]");
const DATABASE_CA: Flag = Flag::value(
    "--database-ca",
    "FILE.pem",
    "certificates to believe of the database beside the public\nones [the variable DATABASE_CA]",
);
const KEYS: Flag = Flag::value(
    "--keys",
    "FILE",
    "the key ring: `keygen` makes its lines\n[the variable SECRETS_KEY_RING]",
);
const LISTEN: Flag =
    Flag::value("--listen", "ADDR", "where the public API listens [127.0.0.1:8080]");
const DASHBOARD: Flag = Flag::value(
    "--dashboard",
    "ADDR",
    "where the dashboard listens; elsewhere than on loopback\nit needs an operator's token \
     [127.0.0.1:8081]",
);
const TOKEN_FILE: Flag = Flag::value(
    "--operator-token-file",
    "FILE",
    "holds the token that the dashboard asks for\n[the variable OPERATOR_TOKEN]",
);
const DATA: Flag =
    Flag::value("--data", "FILE.json", "accounts to add: those that are there stay as they are");
const TRUST_CA: Flag =
    Flag::value("--trust-ca", "FILE.pem", "certificates to believe beside the public ones");
const LOOPBACK: Flag =
    Flag::switch("--allow-loopback-endpoints", "webhooks to this machine too, also without TLS");
const TIME_SCALE: Flag = Flag::value(
    "--time-scale",
    "F",
    "multiplies the waits between attempts: with 0.001, six\nhours take 22 seconds [1]",
);
const TIMEOUT_SCALE: Flag = Flag::value(
    "--timeout-scale",
    "F",
    "multiplies the ten seconds of an attempt, by 2.5 at most [1]",
);
const ENDPOINT_RATE: Flag = Flag::value(
    "--endpoint-rate",
    "N",
    "at most so many attempts a second of one endpoint, counted by\neach sender; 0 is no limit [0]",
);
const METRICS: Flag = Flag::value(
    "--metrics",
    "ADDR",
    "where /metrics, /healthz and /readyz are, too, and nothing\nelse; any address",
);

const MIGRATE: Help = Help {
    usage: "call-assistant-postgres migrate --database URL [--database-ca FILE.pem]",
    about: "Brings the database to this version, and ends with 0.",
    flags: &[DATABASE, DATABASE_CA],
    positional: 0,
};

const API: Help = Help {
    usage: "call-assistant-postgres api --database URL [--database-ca FILE.pem] [--keys FILE]\n\
            \x20              [--listen ADDR] [--dashboard ADDR] [--operator-token-file FILE]\n\
            \x20              [--data FILE.json] [--allow-loopback-endpoints] [--metrics ADDR]",
    about: "Answers the public API and the dashboard. Any number of processes may.",
    flags: &[DATABASE, DATABASE_CA, KEYS, LISTEN, DASHBOARD, TOKEN_FILE, DATA, LOOPBACK, METRICS],
    positional: 0,
};

const SENDER: Help = Help {
    usage: "call-assistant-postgres sender --database URL [--database-ca FILE.pem] [--keys FILE]\n\
            \x20              [--trust-ca FILE.pem] [--allow-loopback-endpoints] [--time-scale F]\n\
            \x20              [--timeout-scale F] [--endpoint-rate N] [--metrics ADDR]",
    about: "Sends webhooks. Any number of senders share the work; one may stop at any time.",
    flags: &[
        DATABASE,
        DATABASE_CA,
        KEYS,
        TRUST_CA,
        LOOPBACK,
        TIME_SCALE,
        TIMEOUT_SCALE,
        ENDPOINT_RATE,
        METRICS,
    ],
    positional: 0,
};

const ALL: Help = Help {
    usage: "call-assistant-postgres all --database URL [the flags of api and sender]",
    about: "The whole service in one process.",
    flags: &[
        DATABASE,
        DATABASE_CA,
        KEYS,
        LISTEN,
        DASHBOARD,
        TOKEN_FILE,
        DATA,
        TRUST_CA,
        LOOPBACK,
        TIME_SCALE,
        TIMEOUT_SCALE,
        ENDPOINT_RATE,
        METRICS,
    ],
    positional: 0,
};

const DEMO: Help = Help {
    usage: "call-assistant-postgres demo [the flags of all, but for those of the database and the keys]",
    about: "The whole service on a PostgreSQL server of its own, which ends with it. The first line\n\
            on standard output is JSON: both addresses, and the keys.",
    flags: &[
        LISTEN,
        DASHBOARD,
        TOKEN_FILE,
        DATA,
        TRUST_CA,
        LOOPBACK,
        TIME_SCALE,
        TIMEOUT_SCALE,
        ENDPOINT_RATE,
        METRICS,
    ],
    positional: 0,
};

const ERASE: Help = Help {
    usage: "call-assistant-postgres erase --database URL --account ID\n\
            \x20              (--number NUMBER | --whole-account)",
    about: "Erases an account with all that belongs to it; or a caller's number from its calls, events\n\
            and logged answers. Says how much it was. It may be run again.",
    flags: &[
        DATABASE,
        DATABASE_CA,
        Flag::value("--account", "ID", "whose"),
        Flag::value("--number", "NUMBER", "a caller's number, or - to read it from standard input"),
        Flag::switch("--whole-account", "the account, its keys, calls, endpoints and events"),
    ],
    positional: 0,
};

const ROTATE_KEYS: Help = Help {
    usage: "call-assistant-postgres rotate-keys --database URL [--keys FILE]",
    about: "Seals signing secrets with the first key of the ring. Every process must have the ring.",
    flags: &[DATABASE, DATABASE_CA, KEYS],
    positional: 0,
};

const KEYGEN: Help = Help {
    usage: "call-assistant-postgres keygen NUMBER",
    about: "Prints a new key, as a line of a key ring. The first line of a ring seals, all open.",
    flags: &[],
    positional: 1,
};

/// Reads the command line, or ends the process with what is wrong.
pub(crate) fn read() -> Role {
    let mut arguments = std::env::args().skip(1);
    let role = arguments.next().unwrap_or_default();
    let rest = arguments.collect();
    let (help, build): (&Help, fn(&Help, &Flags) -> Role) = match role.as_str() {
        "migrate" => (&MIGRATE, |help, flags| Role::Migrate { database: database(help, flags) }),
        "api" => (&API, |help, flags| Role::Api {
            serving: serving(help, flags),
            database: database(help, flags),
            ring: ring(help, flags),
        }),
        "sender" => (&SENDER, |help, flags| Role::Sender {
            options: sending(help, flags, database, ring),
            metrics: metrics(help, flags),
        }),
        "all" => (&ALL, |help, flags| Role::All {
            serving: serving(help, flags),
            sending: sending(help, flags, database, ring),
        }),
        "demo" => (&DEMO, |help, flags| Role::Demo {
            serving: serving(help, flags),
            // Of a database that is made when the command line has been understood.
            sending: sending(help, flags, |_, _| Address::from(""), |_, _| KeyRing::random()),
        }),
        "erase" => (&ERASE, erase),
        "rotate-keys" => (&ROTATE_KEYS, |help, flags| Role::RotateKeys {
            database: database(help, flags),
            ring: ring(help, flags),
        }),
        "keygen" => (&KEYGEN, |help, flags| {
            match flags.positional().first().map_or(Ok(1), |number| number.parse()) {
                Ok(number) => Role::KeyGen { number },
                Err(_) => help.exit("keygen: expected a number from 0 to 255"),
            }
        }),
        "--help" | "-h" => {
            println!("{USAGE}");
            std::process::exit(0);
        }
        _ => {
            last_words(USAGE);
            std::process::exit(2);
        }
    };
    build(help, &help.read_or_exit(rest))
}

fn serving(help: &Help, flags: &Flags) -> Serving {
    let address = |name, default| address(help, flags, name, default);
    let serving = Serving {
        listen: address("--listen", 8080),
        dashboard: address("--dashboard", 8081),
        access: access(help, flags),
        data: flags.text("--data").map(PathBuf::from),
        allow_loopback: flags.has("--allow-loopback-endpoints"),
        metrics: metrics(help, flags),
    };
    if !serving.dashboard.ip().is_loopback() && matches!(serving.access, Access::ThisMachine) {
        help.exit(&format!(
            "--dashboard: it has no login, so it listens on loopback only, unless there is an \
             operator's token: --operator-token-file or {TOKEN}"
        ));
    }
    serving
}

fn address(help: &Help, flags: &Flags, name: &str, default: u16) -> SocketAddr {
    let default = SocketAddr::from(([127, 0, 0, 1], default));
    match flags.read(name, default) {
        Ok(address) => address,
        Err(_) => help.exit(&format!("{name}: expected an address, such as {default}")),
    }
}

fn metrics(help: &Help, flags: &Flags) -> Option<SocketAddr> {
    flags.has("--metrics").then(|| address(help, flags, "--metrics", 9090))
}

fn access(help: &Help, flags: &Flags) -> Access {
    let (text, place) = match flags.text("--operator-token-file") {
        Some(file) => match std::fs::read_to_string(file) {
            Ok(text) => (text, "--operator-token-file"),
            Err(error) => help.exit(&format!("--operator-token-file: {error}")),
        },
        None => match std::env::var(TOKEN) {
            Ok(text) => (text, TOKEN),
            Err(_) => return Access::ThisMachine,
        },
    };
    match Token::new(text.trim_end_matches(['\r', '\n'])) {
        Ok(token) => Access::Token(token),
        Err(error) => help.exit(&format!("{place}: {error}")),
    }
}

fn sending(
    help: &Help,
    flags: &Flags,
    database: fn(&Help, &Flags) -> Address,
    ring: fn(&Help, &Flags) -> KeyRing,
) -> sender::Options {
    let factor = |name, most| match scale::factor(flags.text(name).unwrap_or("1"), most) {
        Ok(factor) => factor,
        Err(error) => help.exit(&format!("{name}: {error}")),
    };
    sender::Options {
        allow_loopback: flags.has("--allow-loopback-endpoints"),
        trust_ca: flags.text("--trust-ca").map(PathBuf::from),
        scale: Scale {
            waits: factor("--time-scale", scale::MOST_WAITS),
            timeouts: factor("--timeout-scale", scale::MOST_TIMEOUTS),
        },
        per_second: flags.read("--endpoint-rate", 0).unwrap_or_else(|error| help.exit(&error)),
        database: database(help, flags),
        ring: ring(help, flags),
        counted: Counted::default(),
    }
}

fn erase(help: &Help, flags: &Flags) -> Role {
    let Some(account) = flags.text("--account") else { help.exit("--account: whose?") };
    let number = match (flags.text("--number"), flags.has("--whole-account")) {
        (Some("-"), false) => {
            let mut line = String::new();
            if let Err(error) = std::io::stdin().read_line(&mut line) {
                help.exit(&format!("--number: {error}"));
            }
            Some(line.trim().to_owned())
        }
        (Some(number), false) => Some(number.to_owned()),
        (None, true) => None,
        _ => help.exit("either --number or --whole-account"),
    };
    Role::Erase { database: database(help, flags), account: account.to_owned(), number }
}

fn database(help: &Help, flags: &Flags) -> Address {
    let given = |flag, variable| {
        flags.text(flag).map(str::to_owned).or_else(|| std::env::var(variable).ok())
    };
    match given("--database", "DATABASE_URL") {
        Some(url) => {
            Address::from(url).with_ca(given("--database-ca", "DATABASE_CA").map(PathBuf::from))
        }
        None => help.exit(
            "--database: which one? `migrate --database URL` prepares it for the other roles; \
             `demo` needs none",
        ),
    }
}

fn ring(help: &Help, flags: &Flags) -> KeyRing {
    match KeyRing::read(flags.text("--keys").map(std::path::Path::new)) {
        Ok(ring) => ring,
        Err(error) => help.exit(&format!("--keys: {error}")),
    }
}
