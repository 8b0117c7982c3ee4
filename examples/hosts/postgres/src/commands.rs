//! The commands of operators: each is a row that names a route of the dashboard, and asks it.

use call_assistant::rest::Scope;
use call_assistant::webhook::sender::DeliveryStatus;
use serde_json::{Map, Value};

use crate::cli::{DATABASE, DATABASE_CA, KEYS, Role, Run, database, ring};
use crate::ops::ask::{Asking, Print};
use host::dashboard::{Action, Route, Verb};
use host::flags::{Command, Flag, Flags, Help, LOOPBACK};
use host::store::EndpointLimit;
use host::store::plan::PLANS;
use host::store::scope::By;

/// The groups of these commands.
pub(crate) const GROUPS: &[(&str, &str)] = &[
    ("accounts", "Lists, shows, creates and changes accounts"),
    ("keys", "Lists, creates and revokes API keys"),
    ("endpoints", "Lists, shows, creates, disables, enables, rotates, pings and deletes endpoints"),
    ("ring", "Checks the key ring"),
    ("deliveries", "Lists, shows, exports, repeats and cancels deliveries"),
    ("levers", "Lists, sets and undoes what holds sending back"),
    ("senders", "Lists senders"),
];

/// What a command asks for, and how the answer is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    action: Action,
    /// The flags of its body, or of its query.
    fields: &'static [Flag],
    /// Exactly one of these fields has to be given, where there are any.
    one_of: &'static [&'static str],
    /// The field of the answer that has the rows of a list, and its columns.
    rows: &'static str,
    columns: &'static [&'static str],
    /// Whether each row is printed as a line of JSON whatever flags say.
    as_lines: bool,
}

pub(crate) const AS: Flag =
    Flag::value("--as", "NAME", "who does this, for the journal [the user of this process]");

pub(crate) const JSON: Flag = Flag::switch("--json", "print JSON");

const LINES: Flag = Flag::switch("--lines", "print each row as a line of JSON, with its position");

const JOURNAL: &[&str] = &["at", "by", "action", "account_id", "target", "before", "after"];
const ACCOUNTS: &[&str] = &["id", "plan", "subscription_active", "closing", "calls", "timezone"];
const KEYS_SHOWN: &[&str] = &["id", "state", "mode", "hint", "created_at", "last_used_at", "name"];
const ENDPOINTS: &[&str] = &["id", "status", "reason", "consecutive_failures", "url"];
const DELIVERIES: &[&str] =
    &["id", "status", "attempts_made", "type", "event_id", "event_created_at", "endpoint_id"];
const LEVERS: &[&str] = &["id", "account_id", "endpoint_id", "per_second", "set_by", "set_at"];
const SENDERS: &[&str] = &[
    "id",
    "role",
    "version",
    "host",
    "pid",
    "lease_ms",
    "clock_ahead_seconds",
    "late_seconds",
    "keys",
    "reason",
    "shards",
];

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

const NEW_ACCOUNT: &[Flag] =
    &[TIMEZONE.required(), Flag::value("--business-name", "TEXT", "its name"), PLAN];
const CHANGE: &[Flag] = &[
    TIMEZONE,
    PLAN,
    Flag::value("--subscription-active", "BOOL", "false: the API answers 402").bool(),
    Flag::value("--closing", "BOOL", "true: it is about to be deleted").bool(),
];
const NEW_KEY: &[Flag] = &[
    Flag::value("--name", "TEXT", "what it is called").required(),
    Flag::value("--mode", "MODE", "which data it reads").one_of(|| vec!["live", "test"]).required(),
    Flag::value("--scopes", "WORDS", "what it may read, with commas in between [all]")
        .some_of(|| Scope::KNOWN.iter().map(Scope::as_str).collect())
        .or_all(),
    Flag::value("--expires-at", "INSTANT", "when it expires [never]"),
];
const NEW_ENDPOINT: &[Flag] = &[
    Flag::value("--url", "URL", "where its events are sent").required(),
    Flag::value("--description", "TEXT", "what its owner calls it"),
];
const FILTER: &[Flag] = &[
    STATUS,
    Flag::value("--endpoint", "ID", "to this endpoint"),
    TYPE,
    Flag::value("--id", "ID", "of this event, or this delivery"),
    Flag::value("--from", "INSTANT", "of events from here on"),
    Flag::value("--until", "INSTANT", "of events before this"),
];
const NEW_LEVER: &[Flag] = &[
    Flag::switch("--everything", "of all accounts"),
    Flag::value("--account", "ID", "of this account").of("account_id"),
    Flag::value("--endpoint", "ID", "of this endpoint").of("endpoint_id"),
    Flag::value(
        "--per-second",
        "N",
        "how many attempts begin in a second at most, in each sender;\n0 pauses",
    )
    .number(),
    Flag::value("--instead-of", "LEVER", "the lever that this one replaces"),
];
const AFTER: &[Flag] = &[Flag::value(
    "--after",
    "POSITION",
    "the position of the last row that is known [the beginning]",
)];

/// The flags of every command, and of those that read or write secrets.
const ALL: &[Flag] = &[DATABASE, DATABASE_CA, AS, JSON];
const SEALED: &[Flag] = &[KEYS];
const HERE: &[Flag] = &[KEYS, LOOPBACK, EndpointLimit::FLAG];

/// The commands, in groups.
pub(crate) const COMMANDS: &[Command<Run>] = &[
    command(
        "journal",
        &[],
        "Prints what operators and owners have done, oldest first, from a position on. A row is printed once all older\n\
         transactions of the database cluster have ended, those of other databases included.",
        "journal --lines > journal.jsonl",
        &[AFTER, &[LINES], ALL],
        Row { fields: AFTER, columns: JOURNAL, ..row(Action::ReadJournal) },
    ),
    command(
        "accounts list",
        &[],
        "Lists the accounts, in the order in which they were added.",
        "accounts list",
        &[ALL],
        Row { columns: ACCOUNTS, ..row(Action::ListAccounts) },
    ),
    command(
        "accounts show",
        &["ACCOUNT"],
        "Shows an account.",
        "accounts show acct_1",
        &[ALL],
        Row { columns: ACCOUNTS, ..row(Action::ShowAccount) },
    ),
    command(
        "accounts create",
        &["ID"],
        "Creates an account.",
        "accounts create acct_1 --timezone Europe/Oslo --plan pro",
        &[NEW_ACCOUNT, ALL],
        Row { fields: NEW_ACCOUNT, ..row(Action::CreateAccount) },
    ),
    command(
        "accounts change",
        &["ACCOUNT"],
        "Changes what is given of an account.",
        "accounts change acct_1 --plan business",
        &[CHANGE, ALL],
        Row { fields: CHANGE, ..row(Action::ChangeAccount) },
    ),
    command(
        "keys list",
        &["ACCOUNT"],
        "Lists the API keys of an account, without their secrets.",
        "keys list acct_1",
        &[ALL],
        Row { columns: KEYS_SHOWN, ..row(Action::ListKeys) },
    ),
    command(
        "keys create",
        &["ACCOUNT"],
        "Creates an API key, and prints its secret this once.",
        "keys create acct_1 --name sync --mode live",
        &[NEW_KEY, ALL],
        Row { fields: NEW_KEY, ..row(Action::CreateKey) },
    ),
    command(
        "keys revoke",
        &["KEY"],
        "Revokes an API key for good.",
        "keys revoke cred_1",
        &[ALL],
        Row { columns: KEYS_SHOWN, ..row(Action::RevokeKey) },
    ),
    command(
        "endpoints list",
        &["ACCOUNT"],
        "Lists the endpoints of an account.",
        "endpoints list acct_1",
        &[SEALED, ALL],
        Row { columns: ENDPOINTS, ..row(Action::ListEndpoints) },
    ),
    command(
        "endpoints show",
        &["ENDPOINT"],
        "Shows an endpoint.",
        "endpoints show whep_1",
        &[SEALED, ALL],
        Row { columns: ENDPOINTS, ..row(Action::ShowEndpoint) },
    ),
    command(
        "endpoints create",
        &["ACCOUNT"],
        "Creates an endpoint, and prints its signing secret this once.",
        "endpoints create acct_1 --url https://hooks.example.com/calls",
        &[NEW_ENDPOINT, HERE, ALL],
        Row { fields: NEW_ENDPOINT, ..row(Action::CreateEndpoint) },
    ),
    command(
        "endpoints disable",
        &["ENDPOINT"],
        "Disables an endpoint until it is enabled. What it misses is kept for thirty days.",
        "endpoints disable whep_1",
        &[SEALED, ALL],
        Row { columns: ENDPOINTS, ..row(Action::PauseEndpoint) },
    ),
    command(
        "endpoints enable",
        &["ENDPOINT"],
        "Enables an endpoint. What it missed is not sent by itself: see `recover`.",
        "endpoints enable whep_1",
        &[SEALED, ALL],
        Row { columns: ENDPOINTS, ..row(Action::EnableEndpoint) },
    ),
    command(
        "endpoints rotate",
        &["ENDPOINT"],
        "Replaces the signing secret of an endpoint, and prints the new one this once. The previous one\n\
         signs for 24 hours more, if it can be opened.",
        "endpoints rotate whep_1",
        &[SEALED, ALL],
        Row { columns: ENDPOINTS, ..row(Action::RotateSecret) },
    ),
    command(
        "endpoints ping",
        &["ENDPOINT"],
        "Sends an endpoint a test event, which is a delivery like any other.",
        "endpoints ping whep_1",
        &[SEALED, ALL],
        row(Action::PingEndpoint),
    ),
    command(
        "endpoints delete",
        &["ENDPOINT"],
        "Deletes an endpoint for good. What is pending is parked, and its log is kept for thirty days.",
        "endpoints delete whep_1",
        &[SEALED, ALL],
        Row { columns: ENDPOINTS, ..row(Action::DeleteEndpoint) },
    ),
    command(
        "deliveries list",
        &["ACCOUNT"],
        "Lists the deliveries of an account, newest first.",
        "deliveries list acct_1 --status failing",
        &[FILTER, SEALED, ALL],
        Row { fields: FILTER, columns: DELIVERIES, ..row(Action::ListDeliveries) },
    ),
    command(
        "deliveries export",
        &["ACCOUNT"],
        "Prints the deliveries of an account with their attempts, each as a line of JSON, newest first.\n\
         The bodies of their events are left out.",
        "deliveries export acct_1 --from 2026-03-01T00:00:00Z",
        &[FILTER, SEALED, ALL],
        Row { fields: FILTER, columns: DELIVERIES, as_lines: true, ..row(Action::ListDeliveries) },
    ),
    command(
        "deliveries show",
        &["DELIVERY"],
        "Shows a delivery with its attempts.",
        "deliveries show dlv_1",
        &[ALL],
        Row { columns: DELIVERIES, ..row(Action::ShowDelivery) },
    ),
    command(
        "deliveries redeliver",
        &["DELIVERY"],
        "Sends a delivery that has ended once more.",
        "deliveries redeliver dlv_1",
        &[ALL],
        Row { columns: DELIVERIES, ..row(Action::Redeliver) },
    ),
    command(
        "deliveries cancel",
        &["ACCOUNT"],
        "Ends what is pending of an account with events of a type. A recovery of the type sends it.",
        "deliveries cancel acct_1 --type ping",
        &[&[TYPE.required()], ALL],
        Row { fields: &[TYPE.required()], ..row(Action::CancelPending) },
    ),
    command(
        "levers list",
        &[],
        "Lists the pauses and the throttles that operators have set, oldest first.",
        "levers list",
        &[ALL],
        Row { columns: LEVERS, rows: "levers", ..row(Action::ShowLevers) },
    ),
    command(
        "levers set",
        &[],
        "Pauses or throttles sending: every sender knows it within two seconds. One that is set already is\n\
         refused, unless --instead-of names it.",
        "levers set --account acct_1 --per-second 0",
        &[NEW_LEVER, ALL],
        Row {
            fields: NEW_LEVER,
            one_of: &["--everything", "--account", "--endpoint"],
            ..row(Action::SetLever)
        },
    ),
    command(
        "levers undo",
        &["LEVER"],
        "Undoes a pause or a throttle. All that waits is sent at once.",
        "levers undo lvr_1",
        &[ALL],
        Row { columns: LEVERS, ..row(Action::UndoLever) },
    ),
    command(
        "senders list",
        &[],
        "Lists the processes that live: the clock and the keys of each, and the shards of its sender.",
        "senders list",
        &[ALL],
        Row { columns: SENDERS, rows: "processes", ..row(Action::ShowLevers) },
    ),
];

const fn command(
    name: &'static str,
    positional: &'static [&'static str],
    about: &'static str,
    example: &'static str,
    flags: &'static [&'static [Flag]],
    row: Row,
) -> Command<Run> {
    let help = Help { usage: "", about, flags, positional, example };
    Command { name, help, run: Run::Ask(row) }
}

/// A command without fields, of which an answer with `data` has no columns.
const fn row(action: Action) -> Row {
    Row { action, fields: &[], one_of: &[], rows: "data", columns: &[], as_lines: false }
}

/// Makes the request.
pub(crate) fn ask(row: &Row, help: &Help, flags: &Flags) -> Role {
    if !row.one_of.is_empty() && row.one_of.iter().filter(|flag| flags.has(flag)).count() != 1 {
        help.exit(&format!("expected one of {}", listed(row.one_of)));
    }
    let route = Route::of(row.action);
    let argument = help.positional.first().and_then(|name| Some((*name, flags.text(name)?)));
    if let Some((name, "")) = argument {
        help.exit(&format!("missing {name}"));
    }
    let argument = argument.map(|(_, text)| text);
    let given = |flag: &Flag| Some((flag.field(), flag.json(flags)?));
    let mut fields: Map<String, Value> = row.fields.iter().filter_map(given).collect();
    if route.method == Verb::Patch && fields.is_empty() {
        let flags: Vec<&str> = row.fields.iter().map(Flag::name).collect();
        help.exit(&format!("nothing to change: expected one of {}", listed(&flags)));
    }
    // The id of what is created is a field.
    if !route.path.contains("{id}") {
        fields.extend(argument.map(|id| ("id".to_owned(), id.into())));
    }
    let fill = |part| if part == "{id}" { argument.unwrap_or_default() } else { part };
    let is_query = route.method == Verb::Get;
    Role::Ask(Box::new(Asking {
        database: database(help, flags),
        by: by(help, flags),
        ring: help.takes("--keys").then(|| ring(help, flags)),
        allow_loopback: flags.has("--allow-loopback-endpoints"),
        endpoint_limit: EndpointLimit::read(flags).unwrap_or_else(|error| help.exit(&error)),
        method: route.method,
        path: route.path.split('/').map(|part| fill(part).to_owned()).collect(),
        query: if is_query { fields.iter().map(as_query).collect() } else { Vec::new() },
        body: if is_query { Map::new() } else { fields }.into(),
        rows: row.rows,
        print: match (row.as_lines || flags.has("--lines"), flags.has("--json")) {
            (true, _) => Print::Lines,
            (false, true) => Print::Json,
            (false, false) => Print::Text(row.columns),
        },
    }))
}

/// Returns a field as one of a query: words with commas in between.
fn as_query((name, value): (&String, &Value)) -> (String, String) {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let words = value.as_array().map(|words| words.iter().map(text).collect::<Vec<_>>().join(","));
    (name.clone(), words.unwrap_or_else(|| text(value)))
}

/// Returns words as a sentence lists them.
fn listed(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        all => all.join(", "),
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
