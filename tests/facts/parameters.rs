//! The parameters and the fields of the API, and that each filter selects.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId};
use call_assistant::model::{Account, Call, CallList};
use call_assistant::rest::client::Client;
use call_assistant::rest::testing::Service;
use call_assistant::rest::{ListCalls, Operation};
use http::{Request, Response, StatusCode};
use serde_json::Value;

use crate::text;

const KEY: &str = "service_test_kept-where-secrets-are";

/// The names in the first cells of a table of the protocol.
fn first_cells(head: &str) -> Vec<String> {
    let page = text("src/guide/protocol.md");
    let (_, table) = page.split_once(head).unwrap_or_else(|| panic!("no table {head}"));
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(','));
    cells.map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
}

#[test]
fn the_protocol_lists_the_parameters() {
    let parameters = Operation::ALL.iter().flat_map(|of| of.parameters().iter().copied());
    assert_eq!(first_cells("| name | of | grammar | default |"), parameters.collect::<Vec<_>>());
    let unknown = ListCalls::from_query("x=1").unwrap_err().to_string();
    for parameter in Operation::ListCalls.parameters() {
        assert!(unknown.contains(parameter), "no {parameter} in {unknown}");
    }
}

/// RES-1, RES-3: and whatever else lists the fields of a call has all of them.
#[test]
fn the_protocol_lists_the_fields() {
    let now = Timestamp::UNIX_EPOCH;
    let names = |json: Vec<u8>| {
        let json: Value = serde_json::from_slice(&json).unwrap();
        let mut names: Vec<String> = json.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    let listed = |head: &str| {
        let mut listed = first_cells(head);
        listed.sort();
        listed
    };
    let account = Account::new(AccountId::parse("acct_1").unwrap(), "UTC");
    assert_eq!(listed("| field of an account | type | note |"), names(account.to_json()));
    let call = names(Call::new(CallId::parse("call_1").unwrap(), now, now).to_json());
    assert_eq!(listed("| field of a call | type | note |"), call);
    let program = text("src/guide/languages/calls.ts");
    for field in &call {
        assert!(program.contains(&format!("  {field}: ")), "src/guide/languages/calls.ts: {field}");
    }
    // The order in which a signature that does not match is explained, and what an operator may record.
    for (file, list) in [
        ("src/webhook/explain/json.rs", "(\n        \"caller\",\n"),
        ("examples/hosts/kit/src/input.rs", "const CALL: &str = "),
    ] {
        let page = text(file);
        let (_, listed) = page.split_once(list).unwrap_or_else(|| panic!("no {list:?} in {file}"));
        let (listed, _) = listed.split_once(';').unwrap();
        let words: Vec<_> = listed.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for field in &call {
            assert!(words.contains(&field.as_str()), "{file}: {field}");
        }
    }
}

/// A filter, two of its values, and the calls of [`service`] that the first one selects: at least two, and not all.
const FILTERS: &[(&str, &str, &str, &[&str])] = &[
    ("created_after", "1970-01-01T00:03:20Z", "1970-01-01T00:00:00Z", &["call_3", "call_2"]),
    ("created_before", "1970-01-01T00:05:00Z", "1970-01-02T00:00:00Z", &["call_2", "call_1"]),
];

fn service() -> Service {
    let client = Client::new("https://api.example.com", KEY).unwrap();
    let mut service = Service::new(client.key(), Timestamp::from_unix(1_767_225_600).unwrap());
    for (id, seconds) in [("call_1", 100), ("call_2", 200), ("call_3", 300)] {
        let at = Timestamp::from_unix(seconds).unwrap();
        service.add(Call::new(CallId::parse(id).unwrap(), at, at));
    }
    service
}

fn get(service: &mut Service, query: &str) -> Response<Vec<u8>> {
    let request = Request::get(format!("https://api.example.com/v1/calls?{query}"));
    service.respond(&request.header("authorization", format!("Bearer {KEY}")).body(()).unwrap())
}

/// LIST-5: each filter selects, over all pages of its list, and its cursor belongs to its list. A filter
/// without a row is found, and each file that does not name it.
#[test]
fn each_filter_selects_on_all_pages() {
    let filters = Operation::ListCalls.parameters().iter();
    let filters: Vec<_> = filters.filter(|name| !["limit", "cursor"].contains(name)).collect();
    let tested: Vec<_> = FILTERS.iter().map(|(name, ..)| name).collect();
    assert_eq!(filters, tested, "FILTERS of this file");
    let mut service = service();
    for (filter, value, other, selected) in FILTERS {
        // Programs that ask, a store that is asked, and the tests of what both say at random.
        for (file, place) in [
            ("src/guide/languages/calls.ts", format!("{filter}?: ")),
            ("src/guide/languages/calls.py", format!("`{filter}`")),
            ("src/guide/sql/server/page.sql", format!("{filter} or ")),
            ("examples/hosts/postgres/src/store/calls.rs", format!("filter.{filter}")),
            ("examples/hosts/postgres/tests/statements/pages.rs", format!("filter.{filter}")),
            ("tests/rest/main.rs", format!("with_{filter}")),
        ] {
            assert!(text(file).contains(&place), "{file} has no {place}");
        }
        let (mut found, mut query) = (Vec::new(), format!("limit=1&{filter}={value}"));
        loop {
            let page = CallList::from_json(get(&mut service, &query).body()).unwrap();
            found.extend(page.calls().map(|call| call.id.as_str().to_owned()));
            let Some(cursor) = page.next_cursor else { break };
            let of_another = format!("limit=1&cursor={cursor}&{filter}={other}");
            let refused = get(&mut service, &of_another);
            assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "the cursor of {filter}");
            query = format!("limit=1&cursor={cursor}");
        }
        assert_eq!(found, *selected, "{filter}");
        let written = ListCalls::from_query(&format!("{filter}={value}")).unwrap().query().unwrap();
        assert!(written.contains(&format!("{filter}=")), "{filter} in {written}");
    }
}

/// LIST-5: each list of calls that a page is put together from has all bounds of the page, as the guide has it and as the
/// durable host asks for many pages at once. A filter that reaches a statement and selects nothing is found.
#[test]
fn each_argument_bounds_each_list_of_a_page() {
    let code = |sql: &str| {
        let lines = sql.lines().filter(|line| !line.starts_with("--"));
        lines.collect::<Vec<_>>().join("\n").split(';').next().unwrap().to_owned()
    };
    let of_guide = code(&text("src/guide/sql/server/page.sql"));
    let of_hosts = text("examples/hosts/postgres/sql/store.sql");
    let of_host = code(of_hosts.split_once("-- name: api_page\n").unwrap().1);
    let (_, asked) = of_host.split_once(" AS asked (").unwrap();
    let (names, _) = asked.split_once(", rows, nth)").unwrap();
    let names = names.split(", ").map(|name| format!("asked.{name}"));
    for (statement, arguments) in [
        (&of_guide, (1..=6).map(|n| format!("${n}")).collect()),
        (&of_host, names.collect::<Vec<_>>()),
    ] {
        let lists = statement
            .split("UNION ALL")
            .filter(|list| list.contains("body") || list.contains("and the rest"));
        assert!(lists.clone().count() >= 2, "{statement}");
        for list in lists {
            for argument in &arguments {
                assert!(list.contains(argument), "a list has no {argument}:{list}");
            }
        }
    }
}
