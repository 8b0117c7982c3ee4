//! The command line: a role, and its flags.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::AccountId;

use crate::commands::{self, AS, JSON, Row, by};
use crate::db::{Address, Database};
use crate::exit;
use crate::health::{Counted, Login};
use crate::key_ring::KeyRing;
use crate::ops::ask::Asking;
use crate::ops::erase::Subject;
use crate::sender;
use host::auth::access::{Access, Ancestors};
use host::flags::{
    Command, Commands, DASHBOARD, Flag, Flags, Help, LISTEN, LOOPBACK, METRICS, TRUST_CA,
};
use host::log;
use host::program::scale::Scale;
use host::store::EndpointLimit;
use host::store::scope::By;

/// The role of a process.
#[derive(Debug)]
pub(crate) enum Role {
    /// Migrates the database to this version.
    Migrate { database: Address, only: Option<Look> },
    /// Serves the public API and the dashboard.
    Api { serving: Serving, database: Address, ring: KeyRing },
    /// Sends pending deliveries.
    Sender { options: sender::Options, metrics: Option<SocketAddr> },
    /// `Api` and `Sender` in one process.
    All { serving: Serving, sending: sender::Options },
    /// `Api` and `Sender`, on a temporary database.
    Demo { serving: Serving, sending: sender::Options },
    /// Erases an account, or a subject from it.
    Erase { database: Address, by: By, account: String, subject: Option<Subject>, which: String },
    /// Recovers what the endpoints of an account, or of all, have missed.
    Recover {
        database: Address,
        by: By,
        account: Option<String>,
        from: Timestamp,
        until: Timestamp,
    },
    /// Seals the secrets again with the newest key.
    RotateKeys { database: Address, by: By, ring: KeyRing },
    /// Opens each sealed secret.
    RingCheck { database: Address, ring: KeyRing, json: bool },
    /// Looks at all that the service needs.
    Doctor { database: Address, ring: KeyRing, login: Login, backup: bool, json: bool },
    /// Asks the dashboard as an operator.
    Ask(Box<Asking>),
    /// Prints a new line for a key ring.
    KeyGen { number: u8 },
}

/// What `migrate` only looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Look {
    /// Which migrations are applied.
    Status,
    /// The statements of those that are not.
    DryRun,
}

/// The options of a process that answers requests.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    pub(crate) listen: SocketAddr,
    pub(crate) dashboard: SocketAddr,
    pub(crate) access: Access,
    pub(crate) ancestors: Ancestors,
    pub(crate) data: Option<PathBuf>,
    pub(crate) allow_loopback: bool,
    pub(crate) endpoint_limit: EndpointLimit,
    pub(crate) metrics: Option<SocketAddr>,
    /// How long to serve on after the signal for shutdown.
    pub(crate) drain: Duration,
}

pub(crate) const DATABASE: Flag =
    Flag::value("--database", "URL", "postgresql://user@host/name [the variable DATABASE_URL]");
pub(crate) const DATABASE_CA: Flag = Flag::value(
    "--database-ca",
    "FILE.pem",
    "extra CA certificates for the database, besides the public\nones [the variable DATABASE_CA]",
);
pub(crate) const KEYS: Flag = Flag::value(
    "--keys",
    "FILE",
    "the key ring; `keygen` prints its lines\n[the variable SECRETS_KEY_RING]",
);
const DATA: Flag =
    Flag::value("--data", "FILE.json", "accounts to add; existing ones do not change");
const ENDPOINT_RATE: Flag = Flag::value(
    "--endpoint-rate",
    "N",
    "limit, in attempts per second and endpoint, counted by each\nsender; 0: no limit [0]",
);
const DRAIN: Flag = Flag::value(
    "--drain-seconds",
    "N",
    "at SIGTERM, how long to be not ready and serve on, for load\nbalancers to notice; at most 3600 [0]",
);

/// The flags of several roles: of whoever uses the store, serves requests, sends, or writes the log.
const STORE: &[Flag] = &[DATABASE, DATABASE_CA, KEYS];
const SERVES: &[Flag] = &[LISTEN, DASHBOARD, Access::FLAG, Ancestors::FLAG, DATA];
const SENDS: &[Flag] = &[TRUST_CA, LOOPBACK, Scale::WAITS, Scale::TIMEOUTS, ENDPOINT_RATE];
const LOG: &[Flag] = &[log::FORMAT, log::LEVEL];

/// The longest drain: 3600 seconds.
const LONGEST_DRAIN: u64 = 3600;

const MIGRATE: Help = Help {
    usage: "",
    about: "Migrates the database to this version. Of several at once one does so, and the others wait.",
    flags: &[&[
        DATABASE,
        DATABASE_CA,
        Flag::switch(
            "--status",
            "print each migration and when it was applied, as JSON; change nothing",
        ),
        Flag::switch("--dry-run", "print the statements that are not applied; change nothing"),
    ]],
    positional: &[],
    example: "migrate --database postgresql://migrator@localhost/calls",
};

const API: Help = Help {
    usage: "",
    about: "Serves the public API and the dashboard. Several processes may run at once.",
    flags: &[STORE, SERVES, &[LOOPBACK, EndpointLimit::FLAG, METRICS, DRAIN], LOG],
    positional: &[],
    example: "api --database postgresql://api@localhost/calls --keys ring --listen 0.0.0.0:8080",
};

const SENDER: Help = Help {
    usage: "",
    about: "Sends webhooks. Several senders share the work, and each may stop at any time.",
    flags: &[STORE, SENDS, &[METRICS], LOG],
    positional: &[],
    example: "sender --database postgresql://sender@localhost/calls --keys ring",
};

const ALL: Help = Help {
    usage: "",
    about: "The whole service in one process.",
    flags: &[STORE, SERVES, SENDS, &[EndpointLimit::FLAG, METRICS, DRAIN], LOG],
    positional: &[],
    example: "all --database postgresql://all@localhost/calls --keys ring",
};

const DEMO: Help = Help {
    usage: "",
    about: "The whole service on a temporary PostgreSQL server. The first line on standard output is\n\
            JSON: both addresses, and the keys.",
    flags: &[SERVES, SENDS, &[EndpointLimit::FLAG, METRICS], LOG],
    positional: &[],
    example: "demo",
};

const ERASE: Help = Help {
    usage: "",
    about: "Erases an account with all its data, or a caller in its calls, events and logged responses.\n\
            Waits for older transactions and for attempts in flight, and says so. Prints how much of each kind it\n\
            found. It ends with 3 where something may be left, and `left` says why. An erased account's id is\n\
            refused from then on. Events that are accepted after the erasure of a caller are accepted: run it\n\
            again for them.",
    flags: &[&[
        DATABASE,
        DATABASE_CA,
        Flag::value("--account", "ID", "the account"),
        Flag::value("--number", "NUMBER", "a caller's number, or - to read it from standard input"),
        Flag::value("--contact", "ID", "a contact: the caller of its calls"),
        Flag::value("--call", "ID", "the caller of one call"),
        Flag::switch("--whole-account", "erase the account, its keys, calls, endpoints and events"),
        AS,
    ]],
    positional: &[],
    example: "erase --account acct_1 --contact contact_1",
};

const RECOVER: Help = Help {
    usage: "",
    about: "Starts a recovery of each active endpoint that has missed something, and prints how many it\n\
            started. Senders make them. It may be run again.",
    flags: &[&[
        DATABASE,
        DATABASE_CA,
        Flag::value("--account", "ID", "the account"),
        Flag::switch("--all-accounts", "the endpoints of all accounts"),
        Flag::value(
            "--from",
            "INSTANT",
            "events from here on, as 2026-03-01T00:00:00Z [thirty days]",
        ),
        Flag::value("--until", "INSTANT", "events before this [all]"),
        AS,
    ]],
    positional: &[],
    example: "recover --account acct_1 --from 2026-03-01T00:00:00Z",
};

const ROTATE_KEYS: Help = Help {
    usage: "",
    about: "Seals the signing secrets again with the first key of the ring. Every process must have the\n\
            ring already.",
    flags: &[&[DATABASE, DATABASE_CA, KEYS, AS]],
    positional: &[],
    example: "rotate-keys --keys ring",
};

const RING_CHECK: Help = Help {
    usage: "",
    about: "Opens every sealed secret with the ring, and prints which keys are in use. Changes nothing.\n\
            It ends with 1 where one does not open.",
    flags: &[&[DATABASE, DATABASE_CA, KEYS, JSON]],
    positional: &[],
    example: "ring check --keys ring",
};

const DOCTOR: Help = Help {
    usage: "",
    about: "Looks at all that the service needs, and prints a line for each: ok, warn or fail, what is found\n\
            and what to do. Changes nothing. It ends with 1 where a line says `fail`, and with 3 where the database\n\
            does not answer.",
    flags: &[&[
        DATABASE,
        DATABASE_CA,
        KEYS,
        Flag::value(
            "--role",
            "ROLE",
            "whose rights the database's user has to have: api, sender,\nall or operator [operator]",
        ),
        Flag::switch("--backup", "look, too, for how long ago the write-ahead log was archived"),
        JSON,
    ]],
    positional: &[],
    example: "doctor --keys ring --role sender",
};

const KEYGEN: Help = Help {
    usage: "",
    about: "Prints a new key, as a line of a key ring. The first line of a ring seals, and all lines open.",
    flags: &[],
    positional: &["NUMBER"],
    example: "keygen 1",
};

/// What a command line asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// A role.
    Role(fn(&Help, &Flags) -> Role),
    /// A request to a route of the dashboard.
    Ask(Row),
}

const COMMANDS: Commands<Run> = Commands {
    program: "call-assistant-postgres",
    about: "The service as a host of many machines over PostgreSQL.",
    groups: commands::GROUPS,
    statuses: exit::STATUSES,
    commands: &[ROLES, commands::COMMANDS],
};

const ROLES: &[Command<Run>] = &[
    Command { name: "demo", help: DEMO, run: Run::Role(demo) },
    Command { name: "migrate", help: MIGRATE, run: Run::Role(migrate) },
    Command {
        name: "api",
        help: API,
        run: Run::Role(|help, flags| Role::Api {
            serving: serving(help, flags),
            database: database(help, flags),
            ring: ring(help, flags),
        }),
    },
    Command {
        name: "sender",
        help: SENDER,
        run: Run::Role(|help, flags| Role::Sender {
            options: sending(help, flags, database, ring),
            metrics: help.metrics(flags),
        }),
    },
    Command {
        name: "all",
        help: ALL,
        run: Run::Role(|help, flags| Role::All {
            serving: serving(help, flags),
            sending: sending(help, flags, database, ring),
        }),
    },
    Command { name: "erase", help: ERASE, run: Run::Role(erase) },
    Command { name: "recover", help: RECOVER, run: Run::Role(recover) },
    Command {
        name: "rotate-keys",
        help: ROTATE_KEYS,
        run: Run::Role(|help, flags| Role::RotateKeys {
            by: by(help, flags),
            database: database(help, flags),
            ring: ring(help, flags),
        }),
    },
    Command { name: "keygen", help: KEYGEN, run: Run::Role(keygen) },
    Command { name: "ring check", help: RING_CHECK, run: Run::Role(ring_check) },
    Command { name: "doctor", help: DOCTOR, run: Run::Role(doctor) },
];

/// Reads the command line. Exits with a message if it is wrong.
pub(crate) fn read() -> Role {
    let (Command { help, run, .. }, flags) = COMMANDS.parse_or_exit();
    log::set_or_exit(help, &flags);
    match run {
        Run::Role(role) => role(help, &flags),
        Run::Ask(row) => commands::ask(row, help, &flags),
    }
}

fn demo(help: &Help, flags: &Flags) -> Role {
    Role::Demo {
        serving: serving(help, flags),
        // The database is created later, once the command line is known to be right.
        sending: sending(help, flags, |_, _| Address::from(""), |_, _| KeyRing::random()),
    }
}

fn migrate(help: &Help, flags: &Flags) -> Role {
    let only = match (flags.has("--status"), flags.has("--dry-run")) {
        (false, false) => None,
        (true, false) => Some(Look::Status),
        (false, true) => Some(Look::DryRun),
        (true, true) => help.exit("expected either --status or --dry-run"),
    };
    Role::Migrate { database: database(help, flags), only }
}

fn keygen(help: &Help, flags: &Flags) -> Role {
    match flags.read("NUMBER", 0, "0 to 255") {
        Ok(number) => Role::KeyGen { number },
        Err(error) => help.exit(&error),
    }
}

fn ring_check(help: &Help, flags: &Flags) -> Role {
    let (database, ring) = (database(help, flags), ring(help, flags));
    Role::RingCheck { database, ring, json: flags.has("--json") }
}

fn doctor(help: &Help, flags: &Flags) -> Role {
    let (database, ring) = (database(help, flags), ring(help, flags));
    let login = flags.read("--role", Login::Operator, "api, sender, all or operator");
    let login = login.unwrap_or_else(|error| help.exit(&error));
    Role::Doctor { database, ring, login, backup: flags.has("--backup"), json: flags.has("--json") }
}

fn serving(help: &Help, flags: &Flags) -> Serving {
    let dashboard = help.address(flags, "--dashboard", 8081);
    let access = Access::read_or_exit(help, flags, dashboard);
    Serving {
        listen: help.address(flags, "--listen", 8080),
        dashboard,
        ancestors: Ancestors::read_or_exit(help, flags, &access),
        access,
        data: flags.text("--data").map(PathBuf::from),
        allow_loopback: flags.has("--allow-loopback-endpoints"),
        endpoint_limit: EndpointLimit::read(flags).unwrap_or_else(|error| help.exit(&error)),
        metrics: help.metrics(flags),
        drain: drain(help, flags),
    }
}

fn drain(help: &Help, flags: &Flags) -> Duration {
    match flags.read("--drain-seconds", 0, "seconds") {
        Ok(seconds @ ..=LONGEST_DRAIN) => Duration::from_secs(seconds),
        _ => help.exit(&format!("--drain-seconds: expected 0 to {LONGEST_DRAIN}")),
    }
}

fn sending(
    help: &Help,
    flags: &Flags,
    database: fn(&Help, &Flags) -> Address,
    ring: fn(&Help, &Flags) -> KeyRing,
) -> sender::Options {
    sender::Options {
        allow_loopback: flags.has("--allow-loopback-endpoints"),
        trust_ca: flags.text("--trust-ca").map(PathBuf::from),
        scale: Scale::read(flags).unwrap_or_else(|error| help.exit(&error)),
        per_second: flags
            .read("--endpoint-rate", 0, "a number of attempts")
            .unwrap_or_else(|error| help.exit(&error)),
        database: database(help, flags),
        ring: ring(help, flags),
        counted: Counted::default(),
    }
}

fn erase(help: &Help, flags: &Flags) -> Role {
    let account = account(help, flags);
    let Some(account) = account else { help.exit("missing --account") };
    let given = ["--number", "--contact", "--call"].map(|flag| flags.text(flag));
    // Ids name nobody once the erasure is done; a number would.
    let which = match given {
        [Some(_), ..] => "a caller, by a number".to_owned(),
        [_, Some(id), _] => format!("the contact {id}"),
        [.., Some(id)] => format!("the caller of {id}"),
        _ => "the account".to_owned(),
    };
    let subject = match (given, flags.has("--whole-account")) {
        ([Some("-"), None, None], false) => {
            let mut line = String::new();
            if let Err(error) = std::io::stdin().read_line(&mut line) {
                help.exit(&format!("--number: {error}"));
            }
            Some(("--number", Subject::from_number(&line)))
        }
        ([Some(number), None, None], false) => Some(("--number", Subject::from_number(number))),
        ([None, Some(id), None], false) => Some(("--contact", Subject::from_id(id))),
        ([None, None, Some(id)], false) => Some(("--call", Subject::from_id(id))),
        ([None, None, None], true) => None,
        _ => help.exit("expected one of --number, --contact, --call and --whole-account"),
    };
    let subject = subject.map(|(flag, subject)| {
        subject.unwrap_or_else(|error| help.exit(&format!("{flag}: {error}")))
    });
    Role::Erase { database: database(help, flags), by: by(help, flags), account, subject, which }
}

/// Reads the id of an account.
fn account(help: &Help, flags: &Flags) -> Option<String> {
    let id = flags.text("--account").map(AccountId::parse)?;
    Some(id.unwrap_or_else(|error| help.exit(&format!("--account: {error}"))).as_str().to_owned())
}

fn recover(help: &Help, flags: &Flags) -> Role {
    let account = match (account(help, flags), flags.has("--all-accounts")) {
        (Some(account), false) => Some(account),
        (None, true) => None,
        _ => help.exit("expected either --account or --all-accounts"),
    };
    let instant = |name, default| match flags.text(name).map(Timestamp::parse) {
        Some(Ok(at)) => at,
        Some(Err(error)) => help.exit(&format!("{name}: {error}")),
        None => default,
    };
    let (from, until) = (instant("--from", Timestamp::MIN), instant("--until", Timestamp::MAX));
    if until <= from {
        help.exit("--until: expected an instant after --from");
    }
    Role::Recover { database: database(help, flags), by: by(help, flags), account, from, until }
}

pub(crate) fn database(help: &Help, flags: &Flags) -> Address {
    let given = |flag, variable| {
        flags.text(flag).map(str::to_owned).or_else(|| std::env::var(variable).ok())
    };
    match given("--database", "DATABASE_URL") {
        Some(url) => {
            let ca = given("--database-ca", "DATABASE_CA").map(PathBuf::from);
            let address = Address::from(url).with_ca(ca);
            // Nothing is connected yet.
            Database::at(&address, 1).map_or_else(|error| help.exit(&error), |_| address)
        }
        None => help.exit(
            "missing --database: `migrate --database URL` prepares it for the other roles; `demo` \
             needs none",
        ),
    }
}

pub(crate) fn ring(help: &Help, flags: &Flags) -> KeyRing {
    match KeyRing::read(flags.text("--keys").map(std::path::Path::new)) {
        Ok(ring) => ring,
        Err(error) => help.exit(&format!("--keys: {error}")),
    }
}
