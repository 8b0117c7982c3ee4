//! The commands of operators, each a request to the dashboard's own routes.

use call_assistant::rest::Scope;
use call_assistant::webhook::sender::DeliveryStatus;
use http::Method;
use serde_json::{Map, Value, json};

use crate::cli::{Build, DATABASE, DATABASE_CA, KEYS, Role, database, ring};
use crate::ops::ask::{Asking, Print};
use host::flags::{Command, Flag, Flags, Help, LOOPBACK};
use host::store::EndpointLimit;
use host::store::plan::PLANS;
use host::store::scope::By;

/// The groups of these commands.
pub(crate) const GROUPS: &[(&str, &str)] = &[
    ("accounts", "Lists, shows, creates and changes accounts"),
    ("keys", "Lists, creates and revokes API keys"),
    ("endpoints", "Lists, shows, creates, disables, enables, rotates and deletes endpoints"),
    ("ring", "Checks the key ring"),
    ("deliveries", "Lists, shows, exports, repeats and cancels deliveries"),
    ("levers", "Lists, sets and undoes what holds sending back"),
    ("senders", "Lists senders"),
];

const JOURNAL: &[&str] = &["at", "by", "action", "account_id", "target", "before", "after"];

pub(crate) const AS: Flag =
    Flag::value("--as", "NAME", "who does this, for the journal [the user of this process]");

pub(crate) const JSON: Flag = Flag::switch("--json", "print JSON");

const ACCOUNTS: &[&str] = &["id", "plan", "subscription_active", "closing", "calls", "timezone"];
const KEYS_SHOWN: &[&str] = &["id", "state", "mode", "hint", "created_at", "last_used_at", "name"];
const ENDPOINTS: &[&str] = &["id", "status", "reason", "consecutive_failures", "url"];
const DELIVERIES: &[&str] =
    &["id", "status", "attempts_made", "type", "event_id", "event_created_at", "endpoint_id"];
const LEVERS: &[&str] = &["id", "account_id", "endpoint_id", "per_second", "set_by", "set_at"];
const SENDERS: &[&str] = &["id", "host", "pid", "lease_ms", "shards"];

const STATUS: Flag = Flag::value(
    "--status",
    "WORDS",
    "of these, with commas in between; or failing alone: an\n\
     attempt has failed, and it is not delivered",
)
.some_of(|| {
    let all = DeliveryStatus::ALL.iter().map(|status| status.as_str());
    all.chain(["failing"]).collect()
});
const PLAN: Flag = Flag::value("--plan", "PLAN", "its plan; business for a new account")
    .one_of(|| PLANS.map(|plan| plan.name).to_vec());
const TIMEZONE: Flag = Flag::value("--timezone", "ZONE", "its IANA timezone, such as Europe/Oslo");
const TYPE: Flag = Flag::value("--type", "TYPE", "of this event type");

/// The flags of a filter of deliveries.
const FILTER: &[Flag] = &[
    KEYS,
    STATUS,
    Flag::value("--endpoint", "ID", "to this endpoint"),
    TYPE,
    Flag::value("--id", "ID", "of this event, or this delivery"),
    Flag::value("--from", "INSTANT", "of events from here on"),
    Flag::value("--until", "INSTANT", "of events before this"),
];

/// Defines the text of a command that has the flags of the database.
macro_rules! help {
    ($name:ident, $positional:literal, $usage:literal, $about:literal $(, $flag:expr)* $(; $group:ident)?) => {
        const $name: Help = Help {
            usage: concat!("call-assistant-postgres ", $usage),
            about: $about,
            flags: &[&[DATABASE, DATABASE_CA, $($flag,)*], $($group,)? &[AS, JSON]],
            positional: $positional,
        };
    };
}

help!(
    ACCOUNTS_LIST,
    0,
    "accounts list",
    "Lists the accounts, in the order in which they were added."
);
help!(ACCOUNTS_SHOW, 1, "accounts show ID", "Shows an account.");
help!(
    ACCOUNTS_CREATE,
    1,
    "accounts create ID --timezone ZONE [--business-name TEXT] [--plan PLAN]",
    "Creates an account.",
    TIMEZONE,
    Flag::value("--business-name", "TEXT", "its name"),
    PLAN
);
help!(
    ACCOUNTS_CHANGE,
    1,
    "accounts change ID [--timezone ZONE] [--plan PLAN] [--subscription-active BOOL] [--closing BOOL]",
    "Changes what is given of an account.",
    TIMEZONE,
    PLAN,
    Flag::value("--subscription-active", "BOOL", "true, or false: the API answers 402"),
    Flag::value("--closing", "BOOL", "true: it is about to be deleted, or false")
);
help!(
    KEYS_LIST,
    1,
    "keys list ACCOUNT",
    "Lists the API keys of an account, without their secrets."
);
help!(
    KEYS_CREATE,
    1,
    "keys create ACCOUNT --name TEXT --mode MODE [--scopes WORDS] [--expires-at INSTANT]",
    "Creates an API key, and prints its secret this once.",
    Flag::value("--name", "TEXT", "what it is called"),
    Flag::value("--mode", "MODE", "which data it reads").one_of(|| vec!["live", "test"]),
    Flag::value("--scopes", "WORDS", "what it may read, with commas in between [all]")
        .some_of(|| Scope::KNOWN.iter().map(Scope::as_str).collect()),
    Flag::value("--expires-at", "INSTANT", "when it expires [never]")
);
help!(KEYS_REVOKE, 1, "keys revoke KEY", "Revokes an API key for good.");
help!(
    ENDPOINTS_LIST,
    1,
    "endpoints list ACCOUNT [--keys FILE]",
    "Lists the endpoints of an account.",
    KEYS
);
help!(ENDPOINTS_SHOW, 1, "endpoints show ID [--keys FILE]", "Shows an endpoint.", KEYS);
help!(
    ENDPOINTS_CREATE,
    1,
    "endpoints create ACCOUNT --url URL [--keys FILE]",
    "Creates an endpoint, and prints its signing secret this once.",
    KEYS,
    Flag::value("--url", "URL", "where its events are sent"),
    LOOPBACK,
    EndpointLimit::FLAG
);
help!(
    ENDPOINTS_DISABLE,
    1,
    "endpoints disable ID [--keys FILE]",
    "Disables an endpoint until it is enabled. What it misses is kept for thirty days.",
    KEYS
);
help!(
    ENDPOINTS_ENABLE,
    1,
    "endpoints enable ID [--keys FILE]",
    "Enables an endpoint. What it missed is not sent by itself: see `recover`.",
    KEYS
);
help!(
    ENDPOINTS_ROTATE,
    1,
    "endpoints rotate ID [--keys FILE]",
    "Replaces the signing secret of an endpoint, and prints the new one this once. The previous one\n\
     signs for 24 hours more, if it can be opened.",
    KEYS
);
help!(
    ENDPOINTS_DELETE,
    1,
    "endpoints delete ID [--keys FILE]",
    "Deletes an endpoint for good. What is pending is parked, and its log is kept for thirty days.",
    KEYS
);
help!(
    DELIVERIES_LIST,
    1,
    "deliveries list ACCOUNT [--keys FILE] [the flags of a filter]",
    "Lists the deliveries of an account, newest first."; FILTER
);
help!(
    DELIVERIES_EXPORT,
    1,
    "deliveries export ACCOUNT [--keys FILE] [the flags of a filter]",
    "Prints the deliveries of an account with their attempts, each as a line of JSON, newest first.\n\
     The bodies of their events are left out."; FILTER
);
help!(DELIVERIES_SHOW, 1, "deliveries show ID", "Shows a delivery with its attempts.");
help!(
    DELIVERIES_REDELIVER,
    1,
    "deliveries redeliver ID",
    "Sends a delivery that has ended once more."
);
help!(
    DELIVERIES_CANCEL,
    1,
    "deliveries cancel ACCOUNT --type TYPE",
    "Ends what is pending of an account with events of a type. A recovery of the type sends it.",
    TYPE
);

help!(
    LEVERS_LIST,
    0,
    "levers list",
    "Lists the pauses and the throttles that operators have set, oldest first."
);
help!(
    LEVERS_SET,
    0,
    "levers set (--everything | --account ID | --endpoint ID) --per-second N [--instead-of LEVER]",
    "Pauses or throttles sending: every sender knows it within two seconds. One that is set already is\n\
     refused, unless --instead-of names it.",
    Flag::switch("--everything", "of all accounts"),
    Flag::value("--account", "ID", "of this account"),
    Flag::value("--endpoint", "ID", "of this endpoint"),
    Flag::value(
        "--per-second",
        "N",
        "how many attempts begin in a second at most, in each sender;\n0 pauses"
    ),
    Flag::value("--instead-of", "LEVER", "the lever that this one replaces")
);
help!(
    LEVERS_UNDO,
    1,
    "levers undo LEVER",
    "Undoes a pause or a throttle. All that waits is sent at once."
);
help!(
    SENDERS_LIST,
    0,
    "senders list",
    "Lists the senders that live, and the shards that each owns."
);
help!(
    JOURNAL_HELP,
    0,
    "journal [--after POSITION]",
    "Prints what operators and owners have done, oldest first, from a position on. A row is printed once all older\n\
     transactions of the database cluster have ended, those of other databases included.",
    Flag::value(
        "--after",
        "POSITION",
        "the position of the last row that is known [the beginning]"
    ),
    Flag::switch("--lines", "print each row as a line of JSON, with its position")
);

/// Defines a command that is one request without a body: its method, its path, and the columns of a list.
macro_rules! request {
    ($name:literal, $help:ident, $method:ident, $path:literal, $columns:ident) => {
        Command {
            name: $name,
            help: &$help,
            run: |help, flags| {
                let print = Print::Text($columns);
                Role::Ask(Box::new(asking(help, flags, Method::$method, $path, print)))
            },
        }
    };
}

pub(crate) const COMMANDS: &[Command<Build>] = &[
    Command { name: "journal", help: &JOURNAL_HELP, run: journal },
    request!("accounts list", ACCOUNTS_LIST, GET, "accounts", ACCOUNTS),
    request!("accounts show", ACCOUNTS_SHOW, GET, "accounts/ID", ACCOUNTS),
    Command { name: "accounts create", help: &ACCOUNTS_CREATE, run: create_account },
    Command { name: "accounts change", help: &ACCOUNTS_CHANGE, run: change_account },
    request!("keys list", KEYS_LIST, GET, "accounts/ACCOUNT/keys", KEYS_SHOWN),
    Command { name: "keys create", help: &KEYS_CREATE, run: create_key },
    request!("keys revoke", KEYS_REVOKE, POST, "keys/KEY/revoke", KEYS_SHOWN),
    request!("endpoints list", ENDPOINTS_LIST, GET, "accounts/ACCOUNT/endpoints", ENDPOINTS),
    request!("endpoints show", ENDPOINTS_SHOW, GET, "endpoints/ID", ENDPOINTS),
    Command { name: "endpoints create", help: &ENDPOINTS_CREATE, run: create_endpoint },
    request!("endpoints disable", ENDPOINTS_DISABLE, POST, "endpoints/ID/pause", ENDPOINTS),
    request!("endpoints enable", ENDPOINTS_ENABLE, POST, "endpoints/ID/enable", ENDPOINTS),
    request!("endpoints rotate", ENDPOINTS_ROTATE, POST, "endpoints/ID/rotate", ENDPOINTS),
    request!("endpoints delete", ENDPOINTS_DELETE, DELETE, "endpoints/ID", ENDPOINTS),
    Command {
        name: "deliveries list",
        help: &DELIVERIES_LIST,
        run: |help, flags| filtered(help, flags, Print::Text(DELIVERIES)),
    },
    Command {
        name: "deliveries export",
        help: &DELIVERIES_EXPORT,
        run: |help, flags| filtered(help, flags, Print::Lines),
    },
    request!("deliveries show", DELIVERIES_SHOW, GET, "deliveries/ID", DELIVERIES),
    request!(
        "deliveries redeliver",
        DELIVERIES_REDELIVER,
        POST,
        "deliveries/ID/redeliver",
        DELIVERIES
    ),
    Command { name: "deliveries cancel", help: &DELIVERIES_CANCEL, run: cancel },
    Command {
        name: "levers list",
        help: &LEVERS_LIST,
        run: |help, flags| part_of_levers(help, flags, "levers", LEVERS),
    },
    Command { name: "levers set", help: &LEVERS_SET, run: set_lever },
    request!("levers undo", LEVERS_UNDO, POST, "levers/LEVER/undo", LEVERS),
    Command {
        name: "senders list",
        help: &SENDERS_LIST,
        run: |help, flags| part_of_levers(help, flags, "senders", SENDERS),
    },
];

fn journal(help: &Help, flags: &Flags) -> Role {
    let print = if flags.has("--lines") { Print::Lines } else { Print::Text(JOURNAL) };
    let mut asking = asking(help, flags, Method::GET, "journal", print);
    asking.query.extend(flags.text("--after").map(|after| ("after".to_owned(), after.to_owned())));
    Role::Ask(Box::new(asking))
}

fn create_account(help: &Help, flags: &Flags) -> Role {
    let mut body = given(flags, &["timezone", "business_name", "plan"]);
    body.insert("id".to_owned(), id(help, flags, "ID").into());
    ask_with(help, flags, Method::POST, "accounts", body)
}

fn change_account(help: &Help, flags: &Flags) -> Role {
    let mut body = given(flags, &["timezone", "plan"]);
    for (flag, field) in
        [("--subscription-active", "subscription_active"), ("--closing", "closing")]
    {
        if flags.text(flag).is_some() {
            let is = flags.read(flag, false, "true or false");
            body.insert(field.to_owned(), is.unwrap_or_else(|error| help.exit(&error)).into());
        }
    }
    if body.is_empty() {
        help.exit(
            "nothing to change: expected --timezone, --plan, --subscription-active or --closing",
        );
    }
    ask_with(help, flags, Method::PATCH, "accounts/ID", body)
}

fn create_key(help: &Help, flags: &Flags) -> Role {
    let mut body = given(flags, &["name", "mode", "expires_at"]);
    let scopes = match flags.words("--scopes") {
        none if none.is_empty() => Scope::KNOWN.iter().map(Scope::as_str).collect(),
        given => given,
    };
    body.insert("scopes".to_owned(), scopes.into());
    ask_with(help, flags, Method::POST, "accounts/ACCOUNT/keys", body)
}

fn create_endpoint(help: &Help, flags: &Flags) -> Role {
    let body = given(flags, &["url"]);
    ask_with(help, flags, Method::POST, "accounts/ACCOUNT/endpoints", body)
}

fn cancel(help: &Help, flags: &Flags) -> Role {
    let body = given(flags, &["type"]);
    ask_with(help, flags, Method::POST, "accounts/ACCOUNT/cancel", body)
}

fn set_lever(help: &Help, flags: &Flags) -> Role {
    let of = ["--everything", "--account", "--endpoint"];
    if of.iter().filter(|flag| flags.has(flag)).count() != 1 {
        help.exit("expected one of --everything, --account and --endpoint");
    }
    let mut body = given(flags, &["instead_of"]);
    for (flag, field) in [("--account", "account_id"), ("--endpoint", "endpoint_id")] {
        body.extend(flags.text(flag).map(|id| (field.to_owned(), id.into())));
    }
    body.insert("per_second".to_owned(), number(flags.text("--per-second").unwrap_or_default()));
    ask_with(help, flags, Method::POST, "levers", body)
}

/// Returns a number as JSON. The dashboard knows the bounds, and says what is wrong with another text.
fn number(text: &str) -> Value {
    text.parse::<u64>().map_or(text.into(), Value::from)
}

/// Lists what one field of the levers has.
fn part_of_levers(
    help: &Help,
    flags: &Flags,
    rows: &'static str,
    columns: &'static [&'static str],
) -> Role {
    let asking = asking(help, flags, Method::GET, "levers", Print::Text(columns));
    Role::Ask(Box::new(Asking { rows, ..asking }))
}

fn filtered(help: &Help, flags: &Flags, print: Print) -> Role {
    let mut asking = asking(help, flags, Method::GET, "accounts/ACCOUNT/deliveries", print);
    let statuses = flags.words("--status").join(",");
    asking.query.extend((!statuses.is_empty()).then(|| ("status".to_owned(), statuses)));
    for name in ["endpoint", "type", "id", "from", "until"] {
        let value = flags.text(&format!("--{name}"));
        asking.query.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }
    Role::Ask(Box::new(asking))
}

fn ask_with(
    help: &Help,
    flags: &Flags,
    method: Method,
    path: &str,
    body: Map<String, Value>,
) -> Role {
    let asking = asking(help, flags, method, path, Print::Text(&[]));
    Role::Ask(Box::new(Asking { body: body.into(), ..asking }))
}

/// Makes the request. A segment of the path in capitals is the one argument that is no flag.
fn asking(help: &Help, flags: &Flags, method: Method, path: &str, print: Print) -> Asking {
    let segment = |segment| match str::starts_with(segment, char::is_uppercase) {
        true => id(help, flags, segment).to_owned(),
        false => segment.to_owned(),
    };
    let path = path.split('/').map(segment).collect();
    let print = match print {
        Print::Text(_) if flags.has("--json") => Print::Json,
        other => other,
    };
    Asking {
        database: database(help, flags),
        by: by(help, flags),
        ring: help.takes("--keys").then(|| ring(help, flags)),
        allow_loopback: flags.has("--allow-loopback-endpoints"),
        endpoint_limit: EndpointLimit::read(flags).unwrap_or_else(|error| help.exit(&error)),
        method,
        path,
        query: Vec::new(),
        body: json!({}),
        rows: "data",
        print,
    }
}

/// Returns who runs the program: the name of `--as`, or that of the process's user.
pub(crate) fn by(help: &Help, flags: &Flags) -> By {
    let name = flags.text("--as").map_or_else(user, str::to_owned);
    By::person(&name).unwrap_or_else(|why| help.exit(&format!("--as: {why}")))
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

/// Returns the one argument that is no flag.
fn id<'a>(help: &Help, flags: &'a Flags, what: &str) -> &'a str {
    match flags.positional().first() {
        Some(id) if !id.is_empty() => id,
        _ => help.exit(&format!("missing {what}")),
    }
}

/// Returns these fields, each from the flag of its name.
fn given(flags: &Flags, fields: &[&str]) -> Map<String, Value> {
    let flag = |field: &str| format!("--{}", field.replace('_', "-"));
    let given = |field: &&str| Some(((*field).to_owned(), flags.text(&flag(field))?.into()));
    fields.iter().filter_map(given).collect()
}
