//! The command line: a role, and its flags.

use std::path::PathBuf;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::AccountId;
use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::db::{self, Address};
use crate::health::Login;
use crate::key_ring::{KeyRing, VARIABLE, in_use};
use crate::ops::ask::Asking;
use crate::ops::erase::Subject;
use crate::{commands, exit};
use host::flags::{self, wrong};
use host::options::{Process, Sending, Serving};
use host::store::scope::By;
use host::{clock, log};

/// A day.
const DAY: Duration = Duration::from_secs(86_400);

/// The service as a host of many machines over PostgreSQL.
#[derive(Parser)]
#[command(name = "call-assistant-postgres")]
struct Program {
    #[command(subcommand)]
    role: Role,
}

/// The role of a process.
#[derive(Subcommand)]
pub(crate) enum Role {
    /// The whole service on a temporary PostgreSQL server. The first line on standard output is JSON: both addresses, and
    /// the keys.
    #[command(after_help = "demo")]
    Demo {
        #[command(flatten)]
        serving: Serving,
        #[command(flatten)]
        sending: Sending,
    },
    /// Migrates the database to this version. If several run at once, one migrates and the others wait.
    #[command(after_help = "migrate --database postgresql://migrator@localhost/calls")]
    Migrate {
        #[command(flatten)]
        database: Database,
        /// Print each migration and when it was applied, as JSON; change nothing.
        #[arg(long, conflicts_with = "dry_run")]
        status: bool,
        /// Print the statements that are not applied; change nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Serves the public API and the dashboard. Several processes may run at once.
    #[command(
        after_help = "api --database postgresql://api@localhost/calls --keys ring --listen 0.0.0.0:8080"
    )]
    Api {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        keys: Keys,
        #[command(flatten)]
        serving: Serving,
        #[command(flatten)]
        drain: Drain,
    },
    /// Sends webhooks. Several senders share the work, and each may stop at any time.
    #[command(after_help = "sender --database postgresql://sender@localhost/calls --keys ring")]
    Sender {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        keys: Keys,
        #[command(flatten)]
        sending: Sending,
        #[command(flatten)]
        process: Process,
    },
    /// The whole service in one process.
    #[command(after_help = "all --database postgresql://all@localhost/calls --keys ring")]
    All {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        keys: Keys,
        #[command(flatten)]
        serving: Serving,
        #[command(flatten)]
        sending: Sending,
        #[command(flatten)]
        drain: Drain,
    },
    /// Erases an account with all its data, or a caller in its calls, events and logged responses. Waits for older
    /// transactions and for attempts in flight, and logs each wait. Prints how many rows of each kind it found. If rows
    /// may be left, the exit status is 3, and `left` has the reason. The id of an erased account cannot be used again.
    /// Later events of an erased caller are still accepted: run the command again to erase the caller from these events.
    #[command(after_help = "erase --account acct_1 --contact contact_1")]
    Erase {
        #[command(flatten)]
        database: Database,
        /// The account.
        #[arg(long, value_name = "ID", value_parser = AccountId::parse)]
        account: AccountId,
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        user: User,
    },
    /// Starts a recovery of each active endpoint with missed deliveries, and prints how many recoveries it started.
    /// Senders send the deliveries. Disabled endpoints are left out: enable them first. The command may be repeated.
    #[command(after_help = "recover --account acct_1 --from 2026-03-01")]
    Recover {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        of: Accounts,
        /// Only events from this instant on: an instant, a day, today or yesterday, in UTC [thirty days ago].
        #[arg(long, value_name = "INSTANT", value_parser = instant)]
        from: Option<Timestamp>,
        /// Only events before this instant, or until the end of this day [all].
        #[arg(long, value_name = "INSTANT", value_parser = end)]
        until: Option<Timestamp>,
        #[command(flatten)]
        user: User,
    },
    /// Seals the signing secrets again with the first key of the ring. Every process must have the ring already.
    #[command(after_help = "rotate-keys --keys ring")]
    RotateKeys {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        keys: Keys,
        #[command(flatten)]
        user: User,
    },
    /// Prints a new key, as a line of a key ring. The first line of a ring seals, and all lines open.
    #[command(after_help = "keygen 1")]
    Keygen {
        #[arg(value_name = "NUMBER", value_parser = flags::expected::<u8>("0 to 255"))]
        number: u8,
    },
    /// Checks the key ring.
    #[command(subcommand)]
    Ring(Ring),
    /// Checks the database, the processes and the key ring. Prints a line for each check: ok, warn or fail, the finding
    /// and the remedy. Changes nothing. The exit status is 1 if a check fails, and 3 if the database does not answer.
    #[command(after_help = "doctor --keys ring --role sender")]
    Doctor {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        keys: Keys,
        /// The role whose rights the database's user needs: api, sender, all or operator.
        #[arg(long, value_name = "ROLE", default_value = "operator")]
        #[arg(value_parser = flags::expected::<Login>("api, sender, all or operator"))]
        role: Login,
        /// Also check how long ago the write-ahead log was archived.
        #[arg(long)]
        backup: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// A command of operators, which is a row of [`commands`].
    #[command(skip)]
    Ask {
        asking: Box<Asking>,
        /// The key ring that was given; `None` where no secret is read or written.
        keys: Option<Keys>,
        /// Whether it seals a secret, and needs the ring.
        seals: bool,
    },
}

#[derive(Subcommand)]
pub(crate) enum Ring {
    /// Opens every sealed secret with the ring, and prints the keys in use. Changes nothing. The exit status is 1 if a
    /// secret cannot be opened.
    #[command(after_help = "ring check --keys ring")]
    Check {
        #[command(flatten)]
        database: Database,
        #[command(flatten)]
        keys: Keys,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// The flags of who uses the database. The URL may have a password.
#[derive(Args)]
pub(crate) struct Database {
    /// postgresql://user@host/name [the variable DATABASE_URL].
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Extra CA certificates for the database, besides the public ones [the variable DATABASE_CA].
    #[arg(long, value_name = "FILE.pem")]
    database_ca: Option<PathBuf>,
}

/// The flag of who reads or writes secrets.
#[derive(Debug, Args)]
pub(crate) struct Keys {
    /// The key ring of the service [the variable SECRETS_KEY_RING].
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
}

/// The flag of what the journal notes.
#[derive(Args)]
pub(crate) struct User {
    /// The name of the operator, for the journal [the user of this process].
    #[arg(long = "as", value_name = "NAME", value_parser = By::person)]
    by: Option<By>,
}

/// The flag of who serves requests over the database.
#[derive(Args)]
pub(crate) struct Drain {
    /// After SIGTERM, the seconds to serve requests while not ready, so that load balancers notice; at most 3600.
    #[arg(long = "drain-seconds", value_name = "N", default_value = "0", value_parser = drain)]
    pub(crate) seconds: Duration,
}

/// The personal data that a command erases.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// A caller's number, or - to read it from standard input.
    #[arg(long)]
    number: Option<String>,
    /// The id of a contact, which is a caller.
    #[arg(long, value_name = "ID")]
    contact: Option<String>,
    /// The id of a call, whose caller is erased.
    #[arg(long, value_name = "ID")]
    call: Option<String>,
    /// Erase the account, its keys, calls, endpoints and events.
    #[arg(long)]
    whole_account: bool,
}

/// Whose endpoints are recovered.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Accounts {
    /// The account.
    #[arg(long, value_name = "ID", value_parser = AccountId::parse)]
    pub(crate) account: Option<AccountId>,
    /// The endpoints of all accounts.
    #[arg(long)]
    all_accounts: bool,
}

/// Reads the command line. Exits with a message if it is wrong.
pub(crate) fn read() -> Role {
    let command = commands::added(Program::command());
    let matches = flags::matches_or_exit(command, exit::STATUSES, commands::WORDS);
    let asked = commands::asked(&matches);
    let role = asked.unwrap_or_else(|| flags::read_or_exit::<Program>(&matches).role);
    match &role {
        Role::Api { serving, .. } | Role::All { serving, .. } | Role::Demo { serving, .. } => {
            serving.process.log.set();
        }
        Role::Sender { process, .. } => process.log.set(),
        _ => log::Flags::default().set(),
    }
    role
}

impl Database {
    /// Returns the address. Exits with a message if there is none.
    pub(crate) fn address(self) -> Address {
        let Some(url) = self.database.or_else(|| std::env::var("DATABASE_URL").ok()) else {
            wrong(
                "missing --database: set DATABASE_URL, or give --database; `migrate` prepares the \
                 database, and `demo` needs no database",
            )
        };
        let ca = self.database_ca.or_else(|| std::env::var_os("DATABASE_CA").map(PathBuf::from));
        let address = Address::from(url).with_ca(ca);
        // Nothing is connected yet.
        db::Database::at(&address, 1).map_or_else(|error| wrong(error), |_| address)
    }
}

impl Keys {
    /// Reads the ring. Exits with a message if there is none.
    pub(crate) async fn ring(self, database: &Address) -> KeyRing {
        if let Some(ring) = self.given() {
            return ring;
        }
        let cure = match in_use::are_none(database).await {
            true => "`keygen 1` prints the first key of a new service",
            false => "give the ring of the running service, which its sender has",
        };
        let place = format!("the environment variable {VARIABLE}");
        wrong(format_args!("--keys: no key ring: {place}: not set; {cure}"))
    }

    /// Reads the ring if one is given. Exits with a message if it is malformed.
    pub(crate) fn given(self) -> Option<KeyRing> {
        let ring = KeyRing::read(self.keys.as_deref());
        ring.unwrap_or_else(|error| wrong(format_args!("--keys: {error}")))
    }
}

impl User {
    /// Returns who runs the program: the name of `--as`, or that of the process's user.
    pub(crate) fn by(self) -> By {
        let own = || By::person(&user()).unwrap_or_else(|why| wrong(format_args!("--as: {why}")));
        self.by.unwrap_or_else(own)
    }
}

impl Which {
    /// Returns what the journal says of it, and the caller, unless it is the whole account. Exits with a message if
    /// nobody can be found by it. Ids name nobody once the erasure is done; a number would.
    pub(crate) fn read(self) -> (String, Option<Subject>) {
        let (which, flag, subject) = match (self.number, self.contact, self.call) {
            (Some(mut number), ..) => {
                if number == "-" {
                    number.clear();
                    let read = std::io::stdin().read_line(&mut number);
                    read.unwrap_or_else(|error| wrong(format_args!("--number: {error}")));
                }
                ("a caller, by a number".to_owned(), "--number", Subject::from_number(&number))
            }
            (_, Some(id), _) => (format!("the contact {id}"), "--contact", Subject::from_id(&id)),
            (.., Some(id)) => (format!("the caller of {id}"), "--call", Subject::from_id(&id)),
            _ => return ("the account".to_owned(), None),
        };
        let subject = subject.unwrap_or_else(|error| wrong(format_args!("{flag}: {error}")));
        (which, Some(subject))
    }
}

/// Reads an instant as people type it: 2026-11-10T14:03:00Z, or 2026-11-10 14:03 in UTC, or the beginning of a day.
pub(crate) fn instant(text: &str) -> Result<Timestamp, &'static str> {
    let read = |text: &str| Timestamp::parse(text).ok();
    let at = || text.split_once(' ').and_then(|(day, time)| read(&format!("{day}T{time}:00Z")));
    day(text).or_else(at).or_else(|| read(text)).ok_or(
        "expected an instant, such as 2026-11-10T14:03:00Z; or a day, such as 2026-11-10, today or yesterday, in UTC",
    )
}

/// Reads an instant as [`instant`] does; of a day, its end.
pub(crate) fn end(text: &str) -> Result<Timestamp, &'static str> {
    day(text).map(|day| day.saturating_add(DAY)).map_or_else(|| instant(text), Ok)
}

fn day(text: &str) -> Option<Timestamp> {
    let seconds = clock::now().unix_seconds();
    let today = Timestamp::from_unix(seconds.saturating_sub(seconds.rem_euclid(86_400)));
    match text {
        "today" => today,
        "yesterday" => today.map(|today| today.saturating_sub(DAY)),
        day => Timestamp::parse(&format!("{day}T00:00:00Z")).ok(),
    }
}

fn drain(text: &str) -> Result<Duration, &'static str> {
    let seconds = text.parse().ok().filter(|seconds| *seconds <= 3600);
    seconds.map(Duration::from_secs).ok_or("expected 0 to 3600")
}

fn user() -> String {
    let Ok(own) = std::fs::metadata("/proc/self") else { return "unknown user".to_owned() };
    let id = std::os::unix::fs::MetadataExt::uid(&own).to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut users = users.lines().map(|line| line.split(':'));
    let found = users.find_map(|mut user| {
        let name = user.next()?;
        (user.nth(1)? == id).then(|| name.to_owned())
    });
    found.unwrap_or_else(|| format!("user {id}"))
}
