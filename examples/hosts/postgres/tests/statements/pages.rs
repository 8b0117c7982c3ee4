//! Pages of calls: what the SQL selects, and how much it reads, whichever plan is forced.

use std::time::Duration;

use call_assistant::id::{AccountId, CallId, CredentialId, RequestId};
use call_assistant::model::Call;
use call_assistant::rest::server::{
    AccountStatus, Authorized, CallRow, CallsQuery, Cursor, CursorKeys, RateWindows, Received,
    RequestHead, StoredKey,
};
use call_assistant::rest::{ApiKey, CallFilter, ListCalls, Mode, Scope};
use call_assistant::{Product, Timestamp};
use call_assistant_postgres::db::At;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, SimpleQueryMessage};

use super::support::{Dice, connect, second, server, statement, statements};

const TABLE: &str = include_str!("../../../../../src/guide/sql/server/calls.sql");
const PAGE: &str = include_str!("../../../../../src/guide/sql/server/page.sql");
const CALL: &str = include_str!("../../../../../src/guide/sql/server/call.sql");
const NOTE_USE: &str = include_str!("../../../../../src/guide/sql/server/note_use.sql");

const PLANS: [&str; 2] = ["force_generic_plan", "force_custom_plan"];
/// In microseconds: within it, a call is written in time.
const HOUR: i64 = 3_600_000_000;

fn account() -> AccountId {
    AccountId::parse("acct_1").unwrap()
}

fn cursors() -> CursorKeys {
    CursorKeys::new(1, [7; 32])
}

/// The query that a request leads to.
fn query(list: &ListCalls) -> CallsQuery {
    let key = ApiKey::from_random(&Product::default(), Mode::Live, [7; 32]);
    let now = second(0);
    let stored = StoredKey::new(CredentialId::parse("cred_1").unwrap(), account(), &key, now)
        .with_scopes([Scope::CallsRead]);
    let status = AccountStatus {
        account_id: account(),
        closing: false,
        subscribed: true,
        api_in_plan: true,
    };
    let (bearer, text) = (format!("Bearer {}", key.reveal()), list.query().unwrap());
    let head = RequestHead::new("GET", "/v1/calls", Some(&text))
        .with_host(b"api.example.com")
        .with_authorization(bearer.as_bytes());
    let received = Received::new(&head, RequestId::from_random([1; 16])).unwrap();
    let identified = received.identify(Some(&stored), now).unwrap();
    let admitted = identified.admit(&mut RateWindows::new(1), now).unwrap();
    match admitted.authorize(&status, &cursors()).unwrap() {
        Authorized::Calls(query) => query,
        other => panic!("{other:?}"),
    }
}

/// An instant, or an end of time, as a parameter.
fn bound(instant: Option<Timestamp>, end: &str) -> String {
    instant.map_or_else(|| end.to_owned(), |instant| instant.to_string())
}

/// The parameters of the page as literals: for `EXECUTE`, which takes them under every plan.
fn parameters(query: &CallsQuery) -> String {
    let filter = query.filter().ceil_to_micros();
    let (started_at, id) = match query.after() {
        Some((started_at, id)) => (started_at.to_string(), id.as_str()),
        None => ("infinity".to_owned(), ""),
    };
    let values = [
        query.account_id().to_string(),
        query.mode().is_live().to_string(),
        bound(filter.created_after, "-infinity"),
        bound(filter.created_before, "infinity"),
        started_at,
        id.to_owned(),
        query.rows_to_read().to_string(),
    ];
    values.map(|value| format!("'{value}'")).join(", ")
}

async fn prepare(client: &Client, plan: &str, page: &str) {
    let sql = format!(
        "DEALLOCATE ALL; SET plan_cache_mode = {plan}; SET jit = off; PREPARE page AS {page}"
    );
    client.batch_execute(&sql).await.unwrap();
}

fn call_of(row: &Row) -> CallRow {
    let instant = |name| row.get::<_, At>(name).0;
    let id = CallId::parse(row.get("id")).unwrap();
    CallRow {
        account_id: AccountId::parse(row.get("account_id")).unwrap(),
        mode: if row.get("livemode") { Mode::Live } else { Mode::Test },
        call: Call::new(id, instant("started_at"), instant("created_at")),
    }
}

async fn insert(client: &Client, row: &CallRow) -> Result<u64, tokio_postgres::Error> {
    let (account, id) = (row.account_id.as_str(), row.call.id.as_str());
    let (started, created) = (At(row.call.started_at), At(row.call.created_at));
    let sql = "INSERT INTO calls (account_id, livemode, id, started_at, created_at)
        VALUES ($1, $2, $3, $4, $5)";
    let values: [&(dyn ToSql + Sync); 5] = [&account, &row.mode.is_live(), &id, &started, &created];
    client.execute(sql, &values).await
}

// The predicate, the order and the limit: as the library's own, over rows of few instants, some of
// them late, with bounds between microseconds, under both plans.
#[tokio::test]
async fn the_page_is_what_the_query_matches() {
    let server = server();
    let client = connect(&server).await;
    client.batch_execute(TABLE).await.unwrap();
    let mut dice = Dice::new(1);
    let mut rows = Vec::new();
    let micros = |micros: u64| second(0).saturating_add(Duration::from_micros(micros));
    while rows.len() < 300 {
        let id = ["call_a", "call_B", "call_-", "Call_", "call_~"][rows.len() % 5];
        let id = CallId::parse(&format!("{id}{}", rows.len())).unwrap();
        let started = micros(dice.below(12));
        let took = [-3, 0, 1, 5, HOUR - 1, HOUR, HOUR + 1, 24 * HOUR][dice.below(8) as usize];
        let created = started.saturating_sub(Duration::from_micros(3));
        let created = created.saturating_add(Duration::from_micros((took + 3) as u64));
        let row = CallRow {
            account_id: AccountId::parse(["acct_1", "acct_1", "acct_2"][dice.below(3) as usize])
                .unwrap(),
            mode: if dice.below(4) == 0 { Mode::Test } else { Mode::Live },
            call: Call::new(id, started, created),
        };
        insert(&client, &row).await.unwrap();
        rows.push(row);
    }
    rows.sort_by_key(|row| (row.call.started_at, row.call.id.as_str().to_owned()));
    rows.reverse();
    for plan in PLANS {
        prepare(&client, plan, &statement(PAGE, "(")).await;
        let mut met = 0;
        for case in 0..300 {
            let instant = |dice: &mut Dice| {
                let later = [0, 0, HOUR as u64, 24 * HOUR as u64][dice.below(4) as usize];
                let micros = later + dice.below(20);
                let nanos = 1_000 * micros + [0, 1, 999][dice.below(3) as usize];
                (dice.below(3) > 0).then(|| second(0).saturating_add(Duration::from_nanos(nanos)))
            };
            let (a, b) = (instant(&mut dice), instant(&mut dice));
            let (after, before) = match (a, b) {
                (Some(a), Some(b)) => (Some(a.min(b)), Some(a.max(b))),
                other => other,
            };
            let filter = after.into_iter().fold(CallFilter::new(), CallFilter::with_created_after);
            let filter = before.into_iter().fold(filter, CallFilter::with_created_before);
            let mut list = ListCalls::new().with_limit(1 + dice.below(20) as usize);
            list.filter = filter.clone();
            if dice.below(2) == 0 {
                let last = &rows[dice.below(300) as usize].call;
                let cursor = Cursor::new(last.started_at, last.id.clone()).with_filter(filter);
                list.cursor = Some(cursors().seal(&account(), Mode::Live, &cursor));
            }
            let query = query(&list);
            let sql = format!("EXECUTE page ({})", parameters(&query));
            let found = client.simple_query(&sql).await.unwrap();
            let found = found.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get("id").map(str::to_owned),
                _ => None,
            });
            let found: Vec<String> = found.collect();
            let expected = rows.iter().filter(|row| query.matches(row)).take(query.rows_to_read());
            let expected: Vec<_> = expected.map(|row| row.call.id.as_str().to_owned()).collect();
            assert_eq!(found, expected, "{plan}, case {case}: {query:?}");
            met += found.len();
        }
        assert!(met > 500, "{met} rows are too few to say anything");
    }
}

// The durable host has these tables and this function.
#[test]
fn the_host_has_what_the_pages_show() {
    let schema = include_str!("../../migrations/0001_schema.sql");
    assert!(schema.contains(include_str!("../../../../../src/guide/sql/server/rate.sql")));
    for index in statements(TABLE).into_iter().filter(|text| text.starts_with("CREATE INDEX")) {
        assert!(schema.contains(&index), "{index}");
    }
    assert_eq!(lateness(TABLE), lateness(schema));
}

/// How late a call is, in a schema.
fn lateness(schema: &str) -> Option<&str> {
    schema
        .lines()
        .map(str::trim)
        .find(|line| line.contains("started_at NOT BETWEEN"))?
        .split(" STORED")
        .next()
}

// One call, and rows as values; and a use of a key is written.
#[tokio::test]
async fn one_row_is_found_or_written() {
    let server = server();
    let client = connect(&server).await;
    client.batch_execute(TABLE).await.unwrap();
    let call = Call::new(CallId::parse("call_1").unwrap(), second(0), second(60));
    let row = CallRow { account_id: account(), mode: Mode::Live, call };
    insert(&client, &row).await.unwrap();
    let find = client.prepare(&statement(CALL, "SELECT")).await.unwrap();
    for (account, live, id, found) in [
        ("acct_1", true, "call_1", true),
        ("acct_1", false, "call_1", false),
        ("acct_2", true, "call_1", false),
        ("acct_1", true, "call_2", false),
    ] {
        let rows = client.query(&find, &[&account, &live, &id]).await.unwrap();
        let expected: &[CallRow] = if found { std::slice::from_ref(&row) } else { &[] };
        assert_eq!(rows.iter().map(call_of).collect::<Vec<_>>(), expected, "{account} {live} {id}");
    }
    let table = "CREATE TABLE api_keys (id text, last_used_at timestamptz);
        INSERT INTO api_keys VALUES ('cred_1')";
    client.batch_execute(table).await.unwrap();
    let [update] = statements(NOTE_USE).try_into().unwrap();
    assert_eq!(client.execute(&update, &[&"cred_1", &At(second(0))]).await.unwrap(), 1);
}

/// Windows over an account's calls, which are about a month's.
fn windows(days: u64) -> Vec<(&'static str, ListCalls)> {
    let end = second(0);
    let before = |seconds: u64| end.saturating_sub(Duration::from_secs(seconds));
    let list = || ListCalls::new().with_limit(100);
    let after = |instant| list().with_filter(CallFilter::new().with_created_after(instant));
    let until = |instant| list().with_filter(CallFilter::new().with_created_before(instant));
    let day = 86_400;
    let deep = Cursor::new(before(days * day / 2), CallId::parse("call_x").unwrap());
    let narrow = |from: u64| {
        let filter = CallFilter::new().with_created_after(before(from));
        list().with_filter(filter.with_created_before(before(from - 60)))
    };
    vec![
        ("all", list()),
        ("a poll that finds nothing", after(end.saturating_add(Duration::from_secs(610)))),
        ("a poll that finds a minute", after(before(60))),
        ("a minute of yesterday", narrow(day)),
        ("a minute in the middle", narrow(days * day / 2)),
        ("a minute of the first day", narrow(days * day - day / 2)),
        ("before there were calls", until(before(2 * days * day))),
        ("the older half", until(before(days * day / 2))),
        ("all, by a bound", after(before(2 * days * day))),
        ("deep into all", list().with_cursor(cursors().seal(&account(), Mode::Live, &deep))),
    ]
}

async fn fill(client: &Client, calls: u64, days: u64) {
    let sql = format!(
        "INSERT INTO calls (account_id, livemode, id, started_at, created_at, body)
        SELECT account, n % 10 <> 0, 'call_' || md5(n::text), started,
            started + (5 + n::bigint * 7919 % 600) * interval '1 second'
                + CASE WHEN n % 5000 = 0 THEN interval '2 days' ELSE '0' END,
            repeat('x', 400)
        FROM (SELECT n, CASE WHEN n % 11 = 0 THEN 'acct_' || n % 700 ELSE 'acct_1' END AS account,
            timestamptz '{}' - n * interval '{} microseconds' AS started
            FROM generate_series(1, {calls}) AS n) AS rows;
        ANALYZE calls",
        second(0),
        days * 86_400_000_000 / calls,
    );
    client.batch_execute(TABLE).await.unwrap();
    client.batch_execute("ALTER TABLE calls ADD body text NOT NULL").await.unwrap();
    client.batch_execute(&sql).await.unwrap();
}

#[tokio::test]
async fn no_plan_reads_more_than_a_range() {
    let server = server();
    let client = connect(&server).await;
    let days = 30;
    fill(&client, 60_000, days).await;
    // The host's has an index more, and its plans are in a test of all of its statements.
    let page = statement(PAGE, "(");
    for plan in PLANS {
        prepare(&client, plan, &page).await;
        for (name, list) in windows(days) {
            let parameters = parameters(&query(&list));
            let sql = format!("EXPLAIN (ANALYZE, TIMING OFF) EXECUTE page ({parameters})");
            let messages = client.simple_query(&sql).await.unwrap();
            let lines = messages.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0),
                _ => None,
            });
            let text = lines.collect::<Vec<_>>().join("\n");
            for one in ["Scan Backward using calls_in_time", "Index Scan using calls_late"] {
                assert!(text.contains(&format!("{one} on calls ")), "{plan}, {name}: {text}");
            }
            for other in ["Seq Scan", "Bitmap", "Removed"] {
                assert!(!text.contains(other), "{plan}, {name}: {text}");
            }
        }
    }
}
