//! The commands of operators: each is a row that names a route of the dashboard, and asks it.

use call_assistant::Timestamp;
use call_assistant::rest::Scope;
use call_assistant::webhook::event::EventType;
use call_assistant::webhook::sender::DeliveryStatus;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, ArgMatches, Args, Command};
use http::Method;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::{self, Database, Keys, Role, User};
use crate::ops::ask::{Asking, Kept, Print};
use host::dashboard::{Action, Route};
use host::flags::read_or_exit;
use host::store::EndpointLimit;
use host::store::plan::PLANS;

/// The groups of these commands.
const GROUPS: &[(&str, &str)] = &[
    ("accounts", "Lists, shows, creates and changes accounts, and makes links for their owners."),
    ("alerts", "Lists alerts."),
    ("calls", "Lists calls."),
    ("keys", "Lists, creates and revokes API keys."),
    (
        "endpoints",
        "Lists, shows, creates, disables, enables, rotates, pings and deletes endpoints.",
    ),
    ("deliveries", "Lists, shows, exports, redelivers and cancels deliveries."),
    ("levers", "Lists, sets and undoes levers, which pause or throttle sending."),
    ("senders", "Lists senders."),
];

/// Usual words that are no commands, and the commands that do it.
pub(crate) const WORDS: &[(&str, &str)] = &[
    ("events", "deliveries list"),
    ("link", "accounts portal"),
    ("pause", "levers set"),
    ("processes", "senders list"),
    ("replay", "recover"),
    ("resend", "deliveries redeliver"),
    ("resume", "levers undo"),
    ("retry", "deliveries redeliver"),
    ("throttle", "levers set"),
    ("unpause", "levers undo"),
    ("webhooks", "endpoints list"),
];

/// The argument of a route with an id, by the first segment of its path: what it is called, and an example.
const ARGUMENTS: &[(&str, &str, &str)] = &[
    ("accounts", "ACCOUNT", "acct_1"),
    ("keys", "KEY", "cred_1"),
    ("endpoints", "ENDPOINT", "whep_1"),
    ("deliveries", "DELIVERY", "dlv_1"),
    ("levers", "LEVER", "lvr_1"),
];

/// The rows of a table where no flag says how many: 100.
const MOST_SHOWN: usize = 100;

const JOURNAL: &str = "position at by action account_id target before after";
const ACCOUNTS: &str = "id plan subscription_active closing calls timezone business_name";
const ALERTS: &str = "id at severity account_id endpoint_id message";
const FLEET: &str =
    "account_id endpoint_id reason since waiting missed acknowledged_by business_name url";
const KEYS: &str = "id state mode hint created_at last_used_at name";
const ENDPOINTS: &str = "id status reason consecutive_failures url";
const CALLS: &str = "id started_at ended_at duration_seconds created_at";
const DELIVERIES: &str =
    "id status attempts_made last next type event_id event_created_at endpoint_id";
const LEVERS: &str = "id account_id endpoint_id per_second set_by set_at";
const SENDERS: &str =
    "id role version host pid lease_ms clock_ahead_seconds late_seconds keys reason shards";

/// The flags of every command.
#[derive(Args)]
struct Common {
    #[command(flatten)]
    database: Database,
    #[command(flatten)]
    user: User,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The flags of who creates endpoints, besides those that the body has.
#[derive(Args)]
struct Limits {
    /// Allow webhooks to this machine, also without TLS.
    #[arg(long = "allow-loopback-endpoints")]
    allow_loopback: bool,
    #[command(flatten)]
    endpoint_limit: EndpointLimit,
}

/// The flags of a list that may be long.
#[derive(Args, Serialize)]
struct Page {
    /// The maximum number of rows [100; with --json all].
    #[serde(skip)]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Continue after this place, which the previous list printed.
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
}

#[derive(Args, Serialize)]
struct Search {
    /// Only accounts whose id begins with this text, or whose business name has words that begin with its words.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    #[serde(flatten)]
    #[command(flatten)]
    page: Page,
}

/// The filter of a list whose route has none.
#[derive(Args)]
struct Days {
    /// Only from this instant on: an instant, a day, today or yesterday, in UTC.
    #[arg(long, value_name = "INSTANT", value_parser = cli::instant)]
    from: Option<Timestamp>,
    /// Only before this instant, or until the end of this day.
    #[arg(long, value_name = "INSTANT", value_parser = cli::end)]
    until: Option<Timestamp>,
}

#[derive(Args, Serialize)]
struct Calls {
    #[serde(skip)]
    #[command(flatten)]
    days: Days,
    #[serde(flatten)]
    #[command(flatten)]
    page: Page,
}

#[derive(Args, Serialize)]
struct Journal {
    /// Only actions on this account.
    #[serde(skip)]
    #[arg(long = "account", value_name = "ID")]
    account: Option<String>,
    #[serde(skip)]
    #[command(flatten)]
    days: Days,
    /// The newest first.
    #[serde(skip)]
    #[arg(long)]
    newest: bool,
    #[serde(flatten)]
    #[command(flatten)]
    page: Page,
    /// Print each row as a line of JSON, with its position.
    #[serde(skip)]
    #[arg(long)]
    lines: bool,
}

#[derive(Args, Serialize)]
struct NewAccount {
    #[arg(value_name = "ID")]
    id: String,
    /// The IANA timezone, such as Europe/Oslo.
    #[arg(long, value_name = "ZONE")]
    timezone: String,
    /// The name of the business.
    #[arg(long, value_name = "TEXT")]
    business_name: Option<String>,
    /// The plan [business].
    #[arg(long, value_name = "PLAN", value_parser = words(PLANS.map(|plan| plan.name)))]
    plan: Option<String>,
}

#[derive(Args, Serialize)]
#[group(required = true, multiple = true)]
struct Change {
    /// The IANA timezone, such as Europe/Oslo.
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// The plan.
    #[arg(long, value_name = "PLAN", value_parser = words(PLANS.map(|plan| plan.name)))]
    plan: Option<String>,
    /// Whether the subscription is active. If false, the API answers 402.
    #[arg(long, value_name = "BOOL")]
    subscription_active: Option<bool>,
    /// Whether the account is about to be deleted. If true, the API answers 403.
    #[arg(long, value_name = "BOOL")]
    closing: Option<bool>,
}

#[derive(Args, Serialize)]
struct NewKey {
    /// The name of the key.
    #[arg(long, value_name = "TEXT")]
    name: String,
    /// The data that the key reads.
    #[arg(long, value_name = "MODE", value_parser = words(["live", "test"]))]
    mode: String,
    /// The scopes of the key, with commas between them [all].
    #[arg(long, value_name = "WORDS", value_parser = words(scopes()), value_delimiter = ',')]
    #[arg(default_values = scopes(), hide_default_value = true)]
    scopes: Vec<String>,
    /// The expiry: an instant, or a day such as 2027-01-31 [never].
    #[arg(long, value_name = "INSTANT", value_parser = cli::instant)]
    expires_at: Option<Timestamp>,
}

#[derive(Args, Serialize)]
struct NewEndpoint {
    /// The URL to which events are sent.
    #[arg(long, value_name = "URL")]
    url: String,
    /// A description for people.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

#[derive(Args, Serialize)]
struct Filter {
    /// Only these statuses, with commas between them. Or only failing: deliveries with a failed attempt
    /// that are not delivered.
    #[arg(long, value_name = "WORDS", value_parser = words(statuses()), value_delimiter = ',')]
    status: Option<Vec<String>>,
    /// Only deliveries to this endpoint.
    #[arg(long, value_name = "ID")]
    endpoint: Option<String>,
    /// Only events of this type.
    #[arg(long, value_name = "TYPE")]
    r#type: Option<String>,
    /// Only this event, or this delivery.
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Only events from this instant on: an instant, a day, today or yesterday, in UTC.
    #[arg(long, value_name = "INSTANT", value_parser = cli::instant)]
    from: Option<Timestamp>,
    /// Only events before this instant, or until the end of this day.
    #[arg(long, value_name = "INSTANT", value_parser = cli::end)]
    until: Option<Timestamp>,
    #[serde(flatten)]
    #[command(flatten)]
    page: Page,
}

#[derive(Args, Serialize)]
struct Overlap {
    /// The time for which the previous secret still signs. With 0, after a leak, no earlier secret
    /// signs [24h].
    #[serde(rename = "overlap_seconds")]
    #[arg(long = "previous", value_name = "TIME")]
    #[arg(value_parser = words(["0", "1h", "24h", "7d"]).map(|text| seconds(&text)))]
    previous: Option<u64>,
}

#[derive(Args, Serialize)]
struct Portal {
    /// The URL of the dashboard, with which the link begins.
    #[serde(skip)]
    #[arg(long, value_name = "URL")]
    dashboard: Option<String>,
}

#[derive(Args, Serialize)]
struct TestEvent {
    /// The event type [ping].
    #[arg(long, value_name = "TYPE", value_parser = words(event_types()))]
    r#type: Option<String>,
}

#[derive(Args, Serialize)]
struct OfType {
    /// The event type.
    #[arg(long, value_name = "TYPE")]
    r#type: String,
}

#[derive(Args, Serialize)]
struct NewLever {
    #[serde(flatten)]
    #[command(flatten)]
    of: OfLever,
    /// The maximum number of attempts per second that begin in each sender. 0 pauses.
    #[arg(long, value_name = "N", value_parser = number)]
    per_second: Value,
    /// The lever that this one replaces.
    #[arg(long, value_name = "LEVER")]
    instead_of: Option<String>,
}

#[derive(Args, Serialize)]
#[group(required = true, multiple = false)]
struct OfLever {
    /// All accounts.
    #[serde(skip)]
    #[arg(long)]
    everything: bool,
    /// This account.
    #[arg(long = "account", value_name = "ID")]
    account_id: Option<String>,
    /// This endpoint.
    #[arg(long = "endpoint", value_name = "ID")]
    endpoint_id: Option<String>,
}

/// A command: what it asks for, and how the answer is printed.
#[derive(Clone, Copy, Debug)]
struct Row {
    action: Action,
    /// One word; or two, of which the first is a group.
    name: &'static str,
    about: &'static str,
    /// Declares the flags of its body, or of its query.
    declare: fn(Command) -> Command,
    /// Reads those that were given, as JSON.
    read: fn(&ArgMatches) -> Value,
    /// Flags that do something, behind its name and its argument.
    example: &'static str,
    /// The field of the answer that has the rows of a list, and its columns.
    rows: (&'static str, &'static str),
    /// Whether the newest rows are first whatever flags say.
    newest: bool,
    /// Whether each row is printed as a line of JSON whatever flags say.
    as_lines: bool,
    /// Whether a key ring may be given: an endpoint is shown with the secrets that still sign.
    opens: bool,
}

/// The commands.
const ROWS: &[Row] = &[
    row(
        Action::ReadJournal,
        "journal",
        "Prints the actions of operators and owners, oldest first. Without --newest, a row \
         is printed once all older transactions of the database cluster have ended, including \
         transactions of other databases.",
    )
    .with::<Journal>("--newest --from yesterday --account acct_1")
    .rows("data", JOURNAL),
    row(
        Action::ShowFleet,
        "fleet",
        "Lists endpoints of all accounts that need attention, newest first, with the reason. \
         Endpoints that have failed for long (suspect) and disabled endpoints are first. `levers list` shows what is paused.",
    )
    .rows("troubled", FLEET),
    row(
        Action::ListAccounts,
        "accounts list",
        "Lists the accounts, oldest first.",
    )
    .with::<Search>("--search fjord --limit 20")
    .rows("data", ACCOUNTS),
    row(Action::ShowAccount, "accounts show", "Shows an account."),
    row(Action::CreateAccount, "accounts create", "Creates an account.")
        .with::<NewAccount>("acct_1 --timezone Europe/Oslo --plan pro"),
    row(Action::ChangeAccount, "accounts change", "Changes the given fields of an account.")
        .with::<Change>("--plan business"),
    row(
        Action::MakeLink,
        "accounts portal",
        "Creates a link that opens only this account and is valid for an hour. Without \
         --dashboard, prints the path, which you append to the dashboard's URL.",
    )
    .with::<Portal>("--dashboard https://dashboard.example.com"),
    row(Action::FollowAlerts, "alerts list", "Lists the alerts of all accounts, the newest first.")
        .with::<Page>("--limit 20")
        .rows("data", ALERTS)
        .newest(),
    row(
        Action::ListCalls,
        "calls list",
        "Lists the live calls of an account, newest first. Callers and summaries need --json.",
    )
    .with::<Calls>("--from yesterday --limit 20")
    .rows("data", CALLS),
    row(Action::ListKeys, "keys list", "Lists the API keys of an account, without their secrets.")
        .with::<Page>("--limit 20")
        .rows("data", KEYS),
    row(Action::CreateKey, "keys create", "Creates an API key, and prints its secret once.")
        .with::<NewKey>("--name sync --mode live"),
    row(Action::RevokeKey, "keys revoke", "Revokes an API key permanently."),
    row(Action::ListEndpoints, "endpoints list", "Lists the endpoints of an account, oldest first.")
        .with::<Page>("--limit 20")
        .rows("data", ENDPOINTS)
        .opens(),
    row(
        Action::ShowEndpoint,
        "endpoints show",
        "Shows an endpoint. If the endpoint fails, shows the latest failed attempt.",
    )
    .opens(),
    row(
        Action::CreateEndpoint,
        "endpoints create",
        "Creates an endpoint, and prints its signing secret once.",
    )
    .with::<NewEndpoint>("--url https://hooks.example.com/calls")
    .opens(),
    row(
        Action::PauseEndpoint,
        "endpoints disable",
        "Disables an endpoint until it is enabled. Pending deliveries are parked once they are \
         due. Missed deliveries are kept for thirty days.",
    )
    .opens(),
    row(
        Action::EnableEndpoint,
        "endpoints enable",
        "Enables an endpoint. Missed deliveries are not sent automatically. See `recover`.",
    )
    .opens(),
    row(
        Action::RotateSecret,
        "endpoints rotate",
        "Replaces the signing secret of an endpoint, and prints the new secret once. The previous \
         secret still signs for 24 hours, or for --previous, if its key is in the ring.",
    )
    .with::<Overlap>("--previous 0")
    .opens(),
    row(
        Action::PingEndpoint,
        "endpoints ping",
        "Sends a test event to an endpoint, as a usual delivery: a ping, or the sample of another type. If the endpoint \
         is disabled, the command is refused.",
    )
    .with::<TestEvent>("--type call.ended")
    .opens(),
    row(
        Action::DeleteEndpoint,
        "endpoints delete",
        "Deletes an endpoint permanently. Pending deliveries are parked once they are due, and the \
         log is kept for thirty days.",
    )
    .opens(),
    row(
        Action::ListDeliveries,
        "deliveries list",
        "Lists the deliveries of an account, newest first.",
    )
    .with::<Filter>("--status failing --from yesterday --limit 20")
    .rows("data", DELIVERIES)
    .opens(),
    row(
        Action::ListDeliveries,
        "deliveries export",
        "Prints the deliveries of an account with their attempts, each as a line of JSON, \
         newest first. The bodies of their events are left out.",
    )
    .with::<Filter>("--from 2026-03-01 --until 2026-03-31")
    .rows("data", DELIVERIES)
    .as_lines()
    .opens(),
    row(
        Action::ShowDelivery,
        "deliveries show",
        "Shows a delivery: its next attempt, its fields and its attempts, newest first.",
    ),
    row(
        Action::Redeliver,
        "deliveries redeliver",
        "Redelivers a delivery that has ended and was not delivered.",
    ),
    row(
        Action::CancelPending,
        "deliveries cancel",
        "Parks an account's pending deliveries of an event type, to all its endpoints. A recovery \
         of the type sends them.",
    )
    .with::<OfType>("--type ping"),
    row(
        Action::ShowLevers,
        "levers list",
        "Lists the pauses and the throttles that operators have set, oldest first.",
    )
    .rows("levers", LEVERS),
    row(
        Action::SetLever,
        "levers set",
        "Pauses or throttles sending. Every sender follows within two seconds. A second lever for \
         the same account, endpoint or everything is refused, unless --instead-of contains the \
         first lever.",
    )
    .with::<NewLever>("--account acct_1 --per-second 0"),
    row(
        Action::UndoLever,
        "levers undo",
        "Undoes a pause or a throttle. All waiting deliveries are sent at once.",
    ),
    row(
        Action::ShowLevers,
        "senders list",
        "Lists the running processes with clock, keys and shards.",
    )
    .rows("processes", SENDERS),
];

/// A command without flags of its own, of which an answer is no list.
const fn row(action: Action, name: &'static str, about: &'static str) -> Row {
    let (declare, read): (fn(_) -> _, fn(&_) -> _) = (|command| command, |_| Value::Null);
    let (example, newest, as_lines, opens) = ("", false, false, false);
    Row { action, name, about, declare, read, example, rows: ("data", ""), newest, as_lines, opens }
}

impl Row {
    /// Gives it flags, and an example with them.
    const fn with<T: Args + Serialize>(self, example: &'static str) -> Self {
        let read = |given: &ArgMatches| serde_json::json!(read_or_exit::<T>(given));
        Self { declare: T::augment_args, read, example, ..self }
    }

    /// Says where the rows of its answer are, and which columns a terminal shows.
    const fn rows(self, field: &'static str, columns: &'static str) -> Self {
        Self { rows: (field, columns), ..self }
    }

    const fn newest(self) -> Self {
        Self { newest: true, ..self }
    }

    const fn as_lines(self) -> Self {
        Self { as_lines: true, ..self }
    }

    const fn opens(self) -> Self {
        Self { opens: true, ..self }
    }

    /// Returns what its argument is called, and an example.
    fn argument(&self) -> Option<(&'static str, &'static str)> {
        let (of, _) = Route::of(self.action).path.split_once("/{id}")?;
        ARGUMENTS.iter().find(|row| row.0 == of).map(|row| (row.1, row.2))
    }

    fn example(&self) -> String {
        let sample = self.argument().map_or("", |(_, sample)| sample);
        let parts = [self.name, sample, self.example].into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(" ")
    }

    fn command(&self) -> Command {
        let verb = self.name.split(' ').next_back().unwrap_or_default();
        let argument = self.argument().map(|(name, _)| {
            let argument = Arg::new("argument").value_name(name).required(true);
            argument.value_parser(NonEmptyStringValueParser::new())
        });
        let mut command = (self.declare)(Command::new(verb).args(argument));
        if self.opens {
            command = Keys::augment_args(command);
        }
        if self.action == Action::CreateEndpoint {
            command = Limits::augment_args(command);
        }
        Common::augment_args(command).about(self.about).after_help(self.example())
    }
}

/// Adds the commands to those of the program.
pub(crate) fn added(program: Command) -> Command {
    let of = |group: &str| {
        let rows = ROWS.iter().filter(move |row| match row.name.split_once(' ') {
            Some((first, _)) => first == group,
            None => group.is_empty(),
        });
        rows.map(Row::command).collect::<Vec<_>>()
    };
    let groups = GROUPS.iter().map(|(name, about)| {
        Command::new(name).about(about).subcommand_required(true).subcommands(of(name))
    });
    program.subcommands(of("")).subcommands(groups)
}

/// Returns the request of the command that was given; `None` if it is none of these.
pub(crate) fn asked(matches: &ArgMatches) -> Option<Role> {
    let (first, mut given) = matches.subcommand()?;
    let mut name = first.to_owned();
    if let Some((second, inner)) = given.subcommand() {
        name = format!("{first} {second}");
        given = inner;
    }
    let row = ROWS.iter().find(|row| row.name == name)?;
    let Common { database, user, json } = read_or_exit(given);
    let limits = (row.action == Action::CreateEndpoint).then(|| read_or_exit::<Limits>(given));
    let route = Route::of(row.action);
    let argument = row.argument().and_then(|_| given.get_one::<String>("argument"));
    let fill = |part: &str| match part {
        "{id}" => argument.cloned().unwrap_or_default(),
        part => part.to_owned(),
    };
    let mut fields = match (row.read)(given) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.retain(|_, value| !value.is_null());
    let text = |name| given.try_get_one::<String>(name).ok().flatten().cloned();
    let at = |name| given.try_get_one::<Timestamp>(name).ok().flatten().copied();
    // The route does not filter by these: the rows are filtered here.
    let by = match row.action {
        Action::ListCalls => Some("started_at"),
        Action::ReadJournal => Some("at"),
        _ => None,
    };
    let kept = by.map(|by| Kept {
        by,
        from: at("from").unwrap_or(Timestamp::MIN),
        until: at("until").unwrap_or(Timestamp::MAX),
        account: text("account"),
    });
    let is_query = route.method == Method::GET;
    let is_set = |flag| given.try_get_one::<bool>(flag).ok().flatten().is_some_and(|set| *set);
    let limit = given.try_get_one::<u64>("limit").ok();
    let print = match (row.as_lines || is_set("lines"), json) {
        (true, _) => Print::Lines,
        (false, true) => Print::Json,
        (false, false) => Print::Text(row.rows.1),
    };
    // A table has an end. Output for programs has none, unless they ask for it.
    let shown = limit.filter(|_| matches!(print, Print::Text(_))).map(|_| MOST_SHOWN);
    let limit =
        limit.flatten().map(|limit| usize::try_from(*limit).unwrap_or(usize::MAX)).or(shown);
    let from = if row.newest || is_set("newest") { "before" } else { "after" };
    if from == "before" {
        let place = fields.remove("after").unwrap_or_else(|| "".into());
        fields.insert(from.to_owned(), place);
    }
    let keys = row.opens.then(|| read_or_exit(given));
    let seals = matches!(row.action, Action::CreateEndpoint | Action::RotateSecret);
    let asking = Box::new(Asking {
        action: row.action,
        database: database.address(),
        by: user.by(),
        heading: match row.action {
            Action::UndoLever => "undone",
            Action::DeleteEndpoint => "deleted",
            _ => "",
        },
        dashboard: text("dashboard"),
        kept,
        allow_loopback: limits.as_ref().is_some_and(|limits| limits.allow_loopback),
        endpoint_limit: limits.map(|limits| limits.endpoint_limit).unwrap_or_default(),
        method: route.method.clone(),
        path: route.path.split('/').map(fill).collect(),
        query: if is_query { fields.iter().map(as_query).collect() } else { Vec::new() },
        body: if is_query { Map::new() } else { fields }.into(),
        rows: row.rows.0,
        from,
        limit,
        print,
    });
    Some(Role::Ask { asking, keys, seals })
}

/// Returns a field as one of a query: words with commas in between.
fn as_query((name, value): (&String, &Value)) -> (String, String) {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let words = value.as_array().map(|words| words.iter().map(text).collect::<Vec<_>>().join(","));
    (name.clone(), words.unwrap_or_else(|| text(value)))
}

fn words(words: impl IntoIterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(words)
}

/// Returns the seconds of one of the times that `--previous` takes.
fn seconds(time: &str) -> u64 {
    match time {
        "1h" => 3_600,
        "24h" => 86_400,
        "7d" => 7 * 86_400,
        _ => 0,
    }
}

fn statuses() -> impl Iterator<Item = &'static str> {
    DeliveryStatus::ALL.iter().map(|status| status.as_str()).chain(["failing"])
}

fn event_types() -> impl Iterator<Item = &'static str> {
    EventType::KNOWN.iter().map(EventType::as_str)
}

fn scopes() -> impl Iterator<Item = &'static str> {
    Scope::KNOWN.iter().map(Scope::as_str)
}

/// Reads a number. Its caller knows the bounds, and refuses a text.
#[expect(clippy::unnecessary_wraps, reason = "the type of a reader")]
fn number(text: &str) -> Result<Value, String> {
    Ok(text.parse::<u64>().map_or(text.into(), Value::from))
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::{ROWS, WORDS, added};

    /// Each usual word stands for a command that exists.
    #[test]
    fn each_usual_word_names_a_command() {
        for (word, command) in WORDS {
            let is_known = *command == "recover" || ROWS.iter().any(|row| row.name == *command);
            assert!(is_known, "{word}: {command}");
        }
    }

    /// Each row is a command that its own example gives.
    #[test]
    fn each_row_takes_its_example() {
        for row in ROWS {
            let program = added(Command::new("program"));
            let example = format!("program {}", row.example());
            let words = example.split(" > ").next().unwrap_or_default().split(' ');
            let given = program.try_get_matches_from(words);
            assert!(given.is_ok(), "{example}: {:?}", given.err());
        }
    }
}
