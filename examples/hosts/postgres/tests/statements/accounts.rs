//! Which statements read or write rows of several accounts: what a router by account needs to know.

use std::collections::BTreeMap;

/// Tables with rows that belong to an account.
const TABLES: &str = "\
    accounts alerts attempts calls deliveries ended endpoints events journal keys levers logins \
    recoveries request_windows";

/// What binds a statement to one account, or to one row or endpoint of one: it is given as a parameter.
const BINDS: &[&str] = &[
    "account_id = $",
    "endpoint = $",
    "number = $",
    "id = $",
    "digest = $",
    "recovery = $",
    // As `deliveries_page` says why.
    "endpoint <= $",
    "endpoint >= $",
    "VALUES ($1",
    "VALUES (not_erased($1)",
    "not_erased($1)",
];

/// Statements that may read or write rows of several accounts at once.
const SEVERAL: &[(&str, &str)] = &[
    // Requests of the API that wait together, each row by its own key.
    ("store/api_call", "a call of each request, by account and id"),
    ("store/api_keys", "the key of each request, by its digest"),
    ("store/api_note_use", "the key of each request, by its id"),
    ("store/api_page", "a page of each request, by an index range of its account"),
    ("store/logins_of", "the login of each request, by its digest"),
    ("store/deliveries_reach", "deliveries of each endpoint that it names, by an index range"),
    // The owner of a shard, over endpoints of its shards: by rows that it names, or by the shard.
    ("queue/insert_alerts", "endpoints that one commit of a sender writes"),
    ("queue/lock_disabled", "endpoints of the sender's shards"),
    ("queue/again", "deliveries that a sender names"),
    ("queue/amend", "the results of one commit"),
    ("queue/endpoints", "the endpoints of one commit"),
    ("queue/give_up", "deliveries that a sender names"),
    ("queue/lock_ended", "the deliveries of one commit"),
    ("queue/lock_endpoints", "the endpoints of one commit"),
    ("queue/lock_pending", "the deliveries of one commit"),
    ("queue/retire", "the results of one commit"),
    ("queue/revive", "the results of one commit"),
    ("queue/wait", "the results of one commit"),
    ("queue/write_endpoints", "the endpoints of one commit"),
    ("sender/running_recoveries", "recoveries of the sender's shards"),
    ("sender/deliveries", "what is due in the sender's shards"),
    ("sender/endpoints", "endpoints of the sender's shards"),
    ("sender/log", "the attempts of one commit"),
    ("sender/poll", "what is new in the sender's shards"),
    // One account or endpoint, by rows that were read of it before.
    ("accept/pending", "the endpoints of the event's account"),
    ("accept/skipped", "the endpoints of the event's account"),
    ("store/deliveries_attempts", "the deliveries of one page of one account"),
    ("store/endpoints_day", "the endpoints of one account"),
    ("store/endpoints_last_hour", "the endpoints of one account"),
    ("erase/attempts_remove", "the deliveries of one account"),
    ("erase/log_write", "attempts of one account"),
    ("erase/pending_remove", "deliveries of one account"),
    // The operator, or the host for itself.
    ("store/accounts_page", "the list of accounts"),
    ("store/accounts_search", "the list of accounts"),
    ("store/alerts_after", "the feed of all alerts"),
    ("sender/drop_alerts", "alerts that are older than thirty days"),
    ("store/alerts_before", "the alerts of all accounts, newest first"),
    ("store/fleet_troubled", "the fleet of an operator"),
    ("store/alerts_new", "the feed of all alerts, numbered in order of commit"),
    ("store/alerts_number", "the feed of all alerts, numbered in order of commit"),
    ("sender/days_overdue", "what cannot be ended, whosever it is"),
    ("sender/days_oldest", "the days of all"),
    ("sender/days_to_drop", "the days of all"),
    ("ops/doctor_server", "the server's settings, and the last day of all"),
    ("erase/endpoints", "an account whose rows are gone is found by what is left"),
    ("store/journal_before", "the journal of operators, newest first"),
    ("store/journal_after", "the journal of operators"),
    ("ops/monitoring_count", "counts over all"),
    ("ops/monitoring_roles", "who owns a table, and no row"),
    ("ops/monitoring_secrets", "counts over all"),
    ("ops/monitoring_state", "counts over all"),
    ("ops/monitoring_unreadable", "counts over the shards of one sender"),
    ("sender/forget_endpoints", "what was deleted is forgotten"),
    ("ops/ring_free", "which keys seal something, whosever it is"),
    ("ops/rotate_look", "every secret is opened"),
    ("ops/rotate_read", "every secret is sealed again"),
];

/// The statements, without comments, by their names.
fn statements() -> BTreeMap<String, String> {
    let code = |text: String| {
        let code: Vec<_> = text.lines().map(|line| line.split("--").next().unwrap()).collect();
        code.join("\n")
    };
    checker::sql::statements().into_iter().map(|(name, text)| (name, code(text))).collect()
}

fn is_word(part: &str, end: fn(&str) -> Option<char>) -> bool {
    end(part).is_none_or(|c| !c.is_alphanumeric() && c != '_')
}

/// Whether a text has a word, or several, that begin at the beginning of one.
fn has(text: &str, words: &str, whole: bool) -> bool {
    text.match_indices(words).any(|(at, _)| {
        is_word(&text[..at], |before| before.chars().next_back())
            && (!whole || is_word(&text[at + words.len()..], |after| after.chars().next()))
    })
}

/// Held for databases that are spread over machines by account (`docs/scaling.md`).
#[test]
fn no_statement_has_rows_of_two_accounts_but_those_with_a_reason() {
    let statements = statements();
    assert!(statements.len() > 100, "{}", statements.len());
    let names_one = |sql: &str| TABLES.split(' ').any(|table| has(sql, table, true));
    let of_accounts = statements.iter().filter(|(_, sql)| names_one(sql));
    let several: Vec<_> = of_accounts
        .filter(|(_, sql)| !BINDS.iter().any(|bind| has(sql, bind, false)))
        .map(|(name, _)| name.as_str())
        .collect();
    let listed: BTreeMap<_, _> = SEVERAL.iter().copied().collect();
    assert_eq!(listed.len(), SEVERAL.len(), "one is listed twice");
    let new: Vec<_> = several.iter().filter(|name| !listed.contains_key(**name)).collect();
    assert!(new.is_empty(), "bound to no account, and without a reason: {new:?}");
    let stale: Vec<_> = listed.keys().filter(|name| !several.contains(name)).collect();
    assert!(stale.is_empty(), "bound to one account, or gone: {stale:?}");
}
