//! Each statement with its parameters, and what some plans may do that others may not.

/// A statement of `sql`, and its parameters as `EXECUTE` takes them: `:name` is filled in.
pub(crate) type Statement = (&'static str, &'static str);

/// A function of the migrations, how it is called, and how many statements it has.
pub(crate) const FUNCTIONS: &[(&str, &[&str], usize)] = &[
    ("add_day", &["SELECT add_day('2026-03-01')"], 0),
    (
        "admit_requests",
        &[
            "SELECT admit_requests('cred_17', 'reads', 600)",
            "SELECT admit_requests('cred_new', 'reads', 600)",
            // By a clock that others were ahead of; after thirty that have gone.
            "SELECT admit_requests('cred_18', 'reads', 600, 2, '2026-03-01 00:00+00')",
            "SELECT admit_requests('cred_19', 'reads', 600, 2, '2026-03-30 00:00:30+00')",
        ],
        5,
    ),
    ("drop_day", &["SELECT drop_day('2026-03-01')"], 1),
    ("not_erased", &["SELECT not_erased('acct_17')"], 1),
];

/// The rooms of statements that an answer may need: files, and the beginnings of the names of some of a file.
pub(crate) const ANSWERING: &[&str] = &["accept/", "ops/ring_", "queue/", "store/"];

/// Their statements that the input of customers reaches, by the public API and by an owner's page, and the most rows that
/// each reads here, whatever was stored: of tables and indexes, those included that a filter leaves out. An
/// account has two endpoints here, and 100 at most besides those that it deleted: 100 a day (D-92, D-104).
pub(crate) const REACHED: &[(&str, f64, &str)] = &[
    ("accept/endpoints", 10.0, "endpoints, and their account"),
    ("accept/event", 10.0, "one event"),
    ("accept/now", 0.0, "no table"),
    ("accept/pending", 10.0, "a delivery for each endpoint"),
    ("accept/skipped", 10.0, "a delivery for each endpoint"),
    ("accept/wait_for_standby", 0.0, "no table"),
    ("ops/ring_add", 256.0, "keys of the ring"),
    ("ops/ring_all", 256.0, "keys of the ring"),
    ("ops/ring_begin", 0.0, "no row"),
    ("queue/again", 4.0, "deliveries that it names"),
    ("queue/endpoints", 4.0, "endpoints that it names"),
    ("queue/lock_recovery", 3.0, "one recovery, its endpoint and its account"),
    ("queue/missed_count", 100.0, "what `missed_window` bounds, and as many events"),
    ("queue/missed_newest", 8_000.0, "1,000 ended, and what is pending, which is parked soon"),
    ("queue/missed_window", 1_040.0, "500 by two tables, and the first of each day"),
    ("queue/park", 500.0, "a page"),
    ("queue/retire", 128.0, "deliveries that it names"),
    ("queue/revive", 8.0, "deliveries that it names"),
    ("queue/settled", 0.0, "no table"),
    ("queue/transaction", 0.0, "no table"),
    ("queue/wait", 128.0, "deliveries that it names"),
    ("queue/write_endpoints", 1.0, "one endpoint"),
    ("queue/write_recovery", 1.0, "one recovery"),
    ("store/accounts_count_keys", 3_000.0, "a thousand of each of three kinds"),
    ("store/accounts_insert_key", 10.0, "one key"),
    ("store/accounts_key", 1.0, "one key"),
    ("store/accounts_keys", 1_001.0, "a page"),
    ("store/accounts_lock", 1.0, "one account"),
    ("store/accounts_newest_keys", 201.0, "those of the overview"),
    ("store/accounts_one", 20_001.0, "calls are counted to 10,000 of each of two indexes"),
    ("store/accounts_revoke_key", 3.0, "one key"),
    ("store/alerts_acknowledge", 1.0, "one alert"),
    ("store/alerts_latest", 210.0, "a page of each endpoint"),
    ("store/alerts_one", 2.0, "one alert, and its endpoint"),
    ("store/api_admit", 256.0, "a window for each request of a batch"),
    ("store/api_call", 256.0, "a call for each request of a batch"),
    ("store/api_keys", 512.0, "a key and its account for each request of a batch"),
    ("store/api_note_use", 1_024.0, "keys of a batch"),
    ("store/api_page", 8.0 * 21_001.0, "of each page 5,000 by two indexes, twice, and 1,001 late"),
    ("store/calls_latest", 40.0, "those of the overview, by two indexes"),
    ("store/deliveries_attempts", 20_000.0, "attempts of a page: six, and 20 by hand"),
    ("store/deliveries_one", 40.0, "one delivery, its endpoint and its event"),
    ("store/deliveries_page", 20_000.0, "10,000, and as many events"),
    ("store/deliveries_reach", 2_000.0, "1,000 by two tables"),
    ("store/deliveries_redeliver_ended", 40.0, "one delivery"),
    ("store/deliveries_redeliver_pending", 10.0, "one delivery"),
    ("store/deliveries_send_now", 3.0, "one delivery"),
    ("store/endpoints_all", 10.0, "endpoints"),
    ("store/endpoints_change", 5.0, "one endpoint, and its account"),
    ("store/endpoints_count", 10.0, "endpoints"),
    ("store/endpoints_day", 8_000.0, "2,000 of each endpoint by two tables"),
    ("store/endpoints_deleted", 10.0, "endpoints"),
    ("store/endpoints_edit", 1.0, "one endpoint"),
    ("store/endpoints_insert", 10.0, "one endpoint"),
    ("store/endpoints_last_hour", 30_000.0, "500 of each endpoint by two tables, and attempts"),
    ("store/endpoints_one", 1.0, "one endpoint"),
    ("store/endpoints_secrets", 1.0, "one endpoint"),
    ("store/fleet_hours", 24.0, "the hours of a day"),
    ("store/fleet_troubled", 101.0 * 2_005.0, "101 endpoints, 1,001 of each by two tables"),
    ("store/journal_insert", 1.0, "one row"),
    ("store/levers", 100_000.0, "what operators have set"),
    ("store/levers_forget", 100_000.0, "what operators have set"),
    ("store/logins_of", 256.0, "a login for each request of a batch"),
    ("store/logins_write", 10_000.0, "logins that expired in a day"),
    ("store/recoveries_endpoints", 300.0, "a page of endpoints, and their account"),
    ("store/recoveries_forget", 100.0, "recoveries of an endpoint"),
    ("store/recoveries_insert", 10.0, "one recovery"),
    ("store/recoveries_one", 2.0, "one recovery, and its endpoint"),
    ("store/recoveries_page", 100.0, "eleven of each endpoint"),
    ("store/recoveries_pause", 1.0, "one recovery"),
];

/// The statements of those rooms that operators alone reach.
pub(crate) const OPERATORS: &str = "\
    queue/give_up store/accounts_change store/accounts_insert store/accounts_page \
    store/accounts_search store/accounts_timezone store/alerts_after store/alerts_before \
    store/alerts_last store/alerts_new store/alerts_number store/alerts_turn store/calls_insert \
    store/journal_after store/journal_before store/journal_reached store/levers_pending \
    store/levers_processes store/levers_senders store/levers_set store/levers_undo \
    store/logins_end";

/// The statements of those rooms that processes reach by themselves: a sender, and a command that changes the ring.
pub(crate) const PROCESSES: &str = "\
    ops/ring_free ops/ring_wait queue/amend queue/count_redeliveries queue/insert_alerts \
    queue/lock_disabled queue/lock_ended queue/lock_endpoints queue/lock_pending \
    queue/missed_ended queue/missed_pending queue/write_alert_missed queue/write_progress";

/// What a plan may do while a day has few rows or an endpoint has few deliveries, where a whole day costs less to read than
/// each row by an index. Once a night it is a fault.
pub(crate) const OF_FEW_ROWS: &[(&str, &str)] = &[
    ("sender/log", "reads all of attempts"),
    ("sender/log", "reads more than it needs of attempts"),
    ("erase/log_write", "looks into every day of attempts"),
    ("erase/log_write", "reads all of attempts"),
];

/// What a plan does, and why this one may.
pub(crate) const REASONS: &[(&str, &str, &str)] = &[
    ("ops/monitoring_count", "reads all of deliveries", "it counts what is pending"),
    ("ops/monitoring_count", "reads all of endpoints", "it counts them"),
    ("ops/monitoring_count", "sorts", "from PostgreSQL 16 on, a plan shows how DISTINCT counts"),
    ("ops/monitoring_count", "reads more than it needs of endpoints", "the suspect ones"),
    ("ops/monitoring_secrets", "reads all of endpoints", "it counts them"),
    ("ops/ring_free", "reads all of endpoints", "twice for each `rotate-keys`"),
    ("ops/monitoring_unreadable", "reads all of endpoints", "while a key is missing"),
    (
        "ops/monitoring_unreadable",
        "reads more than it needs of endpoints",
        "while a key is missing",
    ),
    ("ops/monitoring_state", "reads all of recoveries", "by the index of those that run"),
    ("sender/days_to_drop", "reads more than it needs of pg_class", "the catalog, once a minute"),
    ("drop_day", "reads all of deliveries", "once a day, what is pending and nothing else"),
    ("drop_day", "reads more than it needs of deliveries", "of that, what is of the day"),
    ("sender/days_drop", "reads all of deliveries", "once a day, what is pending and nothing else"),
    ("sender/days_drop", "reads more than it needs of deliveries", "of that, what is of the day"),
    ("sender/days_overdue", "reads more than it needs of deliveries", "while a day is kept"),
    ("sender/days_overdue", "reads all of deliveries", "while a day is kept"),
    ("sender/days_add", "reads many pages", "it makes 38 days"),
    ("queue/missed_newest", "looks into every day of ended", "the thirty days that are kept"),
    ("queue/missed_window", "looks into every day of ended", "the thirty days that are kept"),
    ("queue/missed_count", "looks into every day of ended", "the thirty days that are kept"),
    ("queue/missed_ended", "looks into every day of ended", "the thirty days that are kept"),
    ("store/deliveries_page", "looks into every day of ended", "ids go through all days"),
    ("store/deliveries_reach", "looks into every day of ended", "ids go through all days"),
    ("store/deliveries_reach", "sorts", "pending of one endpoint"),
    ("store/api_page", "reads more than it needs of calls", "5,000 at most"),
    ("store/deliveries_one", "looks into every day of ended", "an id does not tell the day"),
    ("store/fleet_troubled", "looks into every day of ended", "the thirty days that are kept"),
    ("store/fleet_troubled", "reads many pages", "a hundred of each of 101 endpoints"),
    ("store/fleet_troubled", "reads all of endpoints", "by an index: 101 at most"),
    ("queue/lock_disabled", "reads all of endpoints", "by an index of few"),
    ("store/endpoints_day", "sorts", "the latest of two lists, each of which is limited"),
    ("store/endpoints_last_hour", "looks into every day of ended", "ids go through all days"),
    (
        "store/deliveries_redeliver_ended",
        "looks into every day of ended",
        "an id does not tell the day",
    ),
    ("erase/account_events", "looks into every day of events", "in the end there is nothing left"),
    ("queue/missed_newest", "sorts", "what is pending of one endpoint, while much of it is"),
    ("erase/events_read", "looks into every day of events", "any of them may have the number"),
    ("erase/log_read", "looks into every day of ended", "any of them may have the number"),
    ("erase/account_left", "looks into every day of events", "in the end there is nothing left"),
    ("erase/ended_lock", "looks into every day of ended", "in the end there is nothing left"),
    ("erase/endpoints", "reads many pages", "one probe of each day for an endpoint"),
    ("erase/endpoints", "looks into every day of ended", "any of them may have one"),
];

/// Pages of calls by their names, each with the parameters of `store/api_page`: of a walk the first page, one in the
/// middle and the last; a poll; two pages of a sync. `:pages` is all of them, and two of other accounts, at once.
pub(crate) const PAGES: &[(&str, &str)] = &[
    ("first", r#":account true -infinity infinity infinity "" 101"#),
    ("middle", ":account true -infinity infinity 2026-03-15T00:00Z call_ 101"),
    ("last", ":account true -infinity infinity 2026-03-01T00:30Z call_ 101"),
    ("poll", r#":account true 2026-03-31T22:00Z infinity infinity "" 101"#),
    ("sync", r#":account true 2026-03-10T00:00Z infinity infinity "" 101"#),
    ("further", r#":account true 2026-03-10T00:00Z infinity 2026-03-20T00:00Z "" 101"#),
    ("", "acct_1 true -infinity infinity 2026-03-01T00:30Z call_ 2"),
    ("", r#"acct_2 true 2026-03-10T00:00Z infinity infinity "" 2"#),
];

pub(crate) const STATEMENTS: &[Statement] = &[
    // The public API.
    ("store/api_admit", "'{cred_17,cred_18}', '{reads,reads}', '{600,600}', '{1,2}'"),
    ("store/api_call", "'{:account,acct_1}', '{true,true}', '{call_:ended,call_1}'"),
    ("store/api_keys", "ARRAY[sha256('17'), sha256('nobody')]"),
    ("store/api_note_use", "'{cred_17,cred_18}', ':now'"),
    ("store/api_page", ":first"),
    ("store/api_page", ":middle"),
    ("store/api_page", ":last"),
    ("store/api_page", ":poll"),
    ("store/api_page", ":sync"),
    ("store/api_page", ":further"),
    ("store/api_page", ":pages"),
    ("accept/wait_for_standby", ""),
    // Accepting an event.
    ("accept/endpoints", "':account', '{pro}', NULL"),
    ("accept/event", "':account', 'evt_new', ':now', 'call.ended', 'body', NULL"),
    (
        "accept/pending",
        "':account', 'evt_new', ':now', '{:shard}', '{:endpoint}', '{waiting}', '{:now}', '{0}', \
         '{false}', '{1}', '{1}'",
    ),
    (
        "accept/skipped",
        "':account', 'evt_new', ':now', '{:shard}', '{:endpoint}', '{skipped}', '{:now}', '{0}', \
         '{false}', '{1}', '{1}'",
    ),
    // A sender.
    ("sender/poll", "'{:shard}', '{0}', '{0}', pg_current_snapshot()::text, 250"),
    (
        "sender/deliveries",
        "batch(:pending, :count), (days(:pending, :count))[1], (days(:pending, :count))[:count]",
    ),
    ("sender/endpoints", "'{1,2,3,:endpoint}'"),
    ("queue/lock_pending", "batch(:pending, :count)"),
    ("queue/lock_ended", "endpoints(:ended, :few), batch(:ended, :few), days(:ended, :few)"),
    ("queue/wait", WRITE_PENDING),
    ("queue/retire", WRITE_PENDING),
    ("queue/amend", WRITE_ENDED),
    ("queue/revive", WRITE_ENDED),
    (
        "sender/log",
        "batch(:pending, :count), days(:pending, :count), same(2::smallint, :count), \
         same(false, :count), days(:pending, :count), same(20::bigint, :count), same(text '204', :count), \
         same(false, :count), same(text 'delivered', :count), same(NULL::timestamptz, :count), \
         same(NULL::text, :count), same(false, :count), same(NULL::text, :count), \
         same(false, :count), same(NULL::text, :count), same(20::bigint, :count), \
         same(bytea 'mark', :count), true, (days(:pending, :count))[1], \
         (days(:pending, :count))[:count]",
    ),
    ("queue/endpoints", "'{1,2,3,:endpoint}'"),
    ("queue/lock_endpoints", "'{1,2,3,:endpoint}'"),
    (
        "queue/write_endpoints",
        "'{:endpoint}', '{1}', '{NULL}', '{:now}', '{0}', '{1}', '{2}', '{0}', '{NULL}', '{0}'",
    ),
    ("queue/park", ":endpoint, 0"),
    ("queue/lock_disabled", "'{1,2,3,:shard}', ':now', ':now', 0"),
    ("queue/insert_alerts", "'{:endpoint}', '{77}', ':now', '{alert}'"),
    ("queue/write_alert_missed", ":endpoint, 1, 5"),
    ("sender/drop_alerts", "'2026-03-02 00:00+00', 2000"),
    ("accept/now", ""),
    ("owners/forget", ""),
    ("owners/claim", "'sender', 4, 4"),
    ("owners/live", "'sender', 4, 'host', 17"),
    ("owners/release", "'sender', '{1,2}', '{1,1}'"),
    ("owners/renew", "'sender', '{1,2}', '{1,1}', 4"),
    ("owners/leave", "'sender'"),
    ("sender/days_add", ""),
    ("sender/days_wait_briefly", ""),
    ("sender/days_drop", "'20260301'"),
    ("sender/days_oldest", "':now'"),
    ("sender/days_overdue", "'2026-02-01 00:00+00', 0"),
    ("sender/days_to_drop", "'2026-02-01 00:00+00'"),
    // Recoveries.
    ("queue/missed_newest", ":endpoint, '2026-03-25 00:00+00'"),
    ("queue/missed_window", ":endpoint, '2026-03-01 00:00+00', ':now', 0, 500"),
    (
        "queue/missed_count",
        ":shard, :endpoint, '2026-03-01 00:00+00', ':now', :missed, NULL, '-infinity', 1, '{}', \
         :ended - 500, :ended",
    ),
    (
        "queue/missed_ended",
        ":endpoint, '2026-03-01 00:00+00', ':now', :missed, NULL, '-infinity', '{}', 0, :ended, 4",
    ),
    (
        "queue/missed_pending",
        ":shard, :endpoint, '2026-03-01 00:00+00', ':now', 0, '{}', 0, 9223372036854775807, 4",
    ),
    ("store/recoveries_page", "':account', 9223372036854775807, 201"),
    ("sender/running_recoveries", "'{1,2,3,:shard}', ':now'"),
    ("store/recoveries_one", "17"),
    ("store/recoveries_forget", ":endpoint"),
    ("store/recoveries_insert", "9999, :shard, '{}', 1, ':now', NULL"),
    ("queue/lock_recovery", "17"),
    ("queue/count_redeliveries", ":shard, :endpoint"),
    ("queue/write_progress", "17, 2000, 2000, NULL"),
    ("store/recoveries_pause", "17, true"),
    ("store/recoveries_endpoints", "NULL, 17, 100"),
    ("queue/again", "batch(:pending, 4)"),
    ("queue/write_recovery", "17, 1, '{}', 2, NULL"),
    ("queue/settled", "'1'"),
    ("queue/transaction", ""),
    // The dashboard.
    ("store/accounts_change", "':account', 'pro', true, false, 'UTC'"),
    ("store/accounts_insert", "'acct_new', NULL, 'UTC', 'pro', true, false"),
    ("store/accounts_lock", "':account'"),
    ("store/accounts_one", "':account'"),
    ("store/accounts_page", "0, 1001"),
    ("store/accounts_search", "0, 51, 'acct_123', '''acct_123'':*'"),
    ("store/accounts_timezone", "'Europe/Oslo'"),
    ("store/alerts_latest", "':account', 9223372036854775807, 101"),
    ("store/alerts_turn", ""),
    ("store/alerts_new", ""),
    ("store/alerts_number", ""),
    ("store/alerts_last", ""),
    ("store/alerts_after", "17, 100"),
    ("store/alerts_before", "9223372036854775807, 100"),
    ("store/alerts_one", "17"),
    ("store/fleet_hours", ""),
    ("store/fleet_troubled", "101, 1001"),
    ("store/alerts_acknowledge", "17, 'somebody', ':now'"),
    ("store/levers", "NULL"),
    ("store/levers_set", "':account', NULL, 0, 'operator', ':now'"),
    ("store/levers_undo", "17"),
    ("store/levers_forget", "':account', NULL"),
    ("store/levers_processes", ""),
    ("store/levers_senders", ""),
    ("store/levers_pending", "':account', 0, 0, 'ping'"),
    ("store/logins_write", "sha256('17'), ':account', ':now', false"),
    ("store/logins_of", "ARRAY[sha256('17'), sha256('nobody')]"),
    ("store/logins_end", "':account'"),
    ("store/deliveries_attempts", "batch(:ended, 100), event_at(:ended), event_at(:ended + 400)"),
    ("store/calls_insert", "':account', true, '{call_new}', '{:now}', '{:now}', '{body}'"),
    (
        "store/deliveries_page",
        "'{:shard}', '{:endpoint}', NULL, NULL, NULL, '-infinity', 'infinity', 9223372036854775807, \
         51, 4096, NULL, false, '-9223372036854775808'",
    ),
    ("store/deliveries_one", ":endpoint, :ended"),
    ("store/endpoints_one", "'whep_:endpoint'"),
    (
        "store/endpoints_insert",
        "'whep_new', ':account', 1, ':now', 'https://x.example/', false, '', NULL, ':now', 0, 0, 0, NULL",
    ),
    ("store/endpoints_edit", ":endpoint, true, 'what it is for', 'https://x.example/', false"),
    ("store/endpoints_count", "':account'"),
    ("store/endpoints_deleted", "':account', ':now'"),
    ("store/accounts_count_keys", "':account', ':now', ':now'"),
    ("store/endpoints_secrets", ":endpoint, 'sealed'"),
    ("store/endpoints_change", "'whep_:endpoint'"),
    ("store/endpoints_all", "':account', true, -1, 1001"),
    ("ops/monitoring_count", ""),
    ("ops/monitoring_gauges", ""),
    ("ops/monitoring_hour", ""),
    ("ops/monitoring_roles", "'{call_assistant_api,call_assistant_operator}'"),
    ("ops/monitoring_secrets", ""),
    ("ops/monitoring_state", "1"),
    ("ops/doctor_server", ""),
    ("store/journal_insert", "'ada', 'key.revoked', ':account', 'cred_17', NULL, NULL"),
    ("store/journal_after", "'0', 0, 1000"),
    ("store/journal_before", "'18446744073709551615', 0, 100"),
    ("store/journal_reached", "'1', 1"),
    ("erase/journal", "':account'"),
    ("ops/monitoring_turn", "5, 20"),
    ("ops/monitoring_unreadable", "'sender-0', '{\"\\\\x0101\"}'"),
    ("ops/monitoring_whole_tables", ""),
    (
        "store/accounts_insert_key",
        "'cred_new', ':account', sha256('new'), true, 'a key', 'abcd', '{}', ':now', NULL, NULL, NULL",
    ),
    ("store/accounts_revoke_key", "'cred_17', ':now'"),
    ("store/accounts_key", "'cred_17'"),
    ("store/accounts_keys", "':account', 0, 1001"),
    ("store/accounts_newest_keys", "':account', 201"),
    ("store/endpoints_last_hour", "'{:shard}', '{:endpoint}', event_at(:ended)"),
    (
        "store/endpoints_day",
        "'{:shard}', '{:endpoint}', '2026-03-28 12:00+00', '2026-03-28 00:00+00', 2000, \
         '2026-03-29 12:00+00'",
    ),
    ("store/levers", "':account'"),
    ("store/calls_latest", "':account', 'infinity', '', 11"),
    ("store/calls_latest", "':account', '2026-03-15 00:00+00', 'call_', 11"),
    (
        "store/deliveries_reach",
        "'{:endpoint}', '{9223372036854775807}', 1000, '-infinity', 'infinity'",
    ),
    ("store/deliveries_redeliver_ended", ":endpoint, :ended"),
    ("store/deliveries_redeliver_pending", ":endpoint, :pending"),
    ("store/deliveries_send_now", ":pending, ':now'"),
    // Erasing, and keys.
    ("erase/account", "'acct_4999'"),
    ("erase/account_calls", "':account', 1000"),
    ("erase/account_events", "':account', 1000"),
    ("erase/account_known", "':account'"),
    ("erase/account_left", "':account', '{:endpoint}'"),
    ("erase/account_mark", "':account'"),
    ("erase/attempts_remove", "batch(:ended, :count), event_at(:ended), event_at(:ended + 512)"),
    ("erase/calls_read", "':account', '', 1000"),
    ("erase/calls_write", "':account', '{call_:ended}', '{body}', '{left}'"),
    ("erase/ended_lock", ":endpoint, 0, 1000"),
    (
        "erase/ended_remove",
        ":endpoint, batch(:ended, :count), event_at(:ended), event_at(:ended + 512)",
    ),
    ("erase/endpoints", "-1, 100"),
    ("erase/events_read", "':account', '', '-infinity', 1000"),
    (
        "erase/events_write",
        "':account', events(:ended, :count), event_at(:ended), event_at(:ended + 512)",
    ),
    ("erase/log_read", ":endpoint, 0, 1000"),
    (
        "erase/log_write",
        "batch(:ended, :count), days(:ended, :count), days(:ended, :count), same(1::smallint, :count)",
    ),
    ("erase/may_be_in_flight", "30"),
    ("erase/pending_lock", ":endpoint, 0, 1000"),
    ("erase/pending_read", ":endpoint, 0, 1000"),
    ("erase/pending_remove", "batch(:pending, :count)"),
    ("queue/give_up", "batch(:pending, :count), ':now'"),
    ("sender/forget_endpoints", "5000, 1000, '2026-03-02 00:00+00'"),
    ("ops/processes_tell", "'sender-0', '{}'"),
    ("ops/ring_add", "7, sha256('a key')"),
    ("ops/ring_all", ""),
    ("ops/ring_begin", ""),
    ("ops/ring_free", "1"),
    ("ops/ring_wait", ""),
    ("ops/rotate_look", "5000"),
    ("ops/rotate_read", "5000"),
];

const WRITE_PENDING: &str = "endpoints(:pending, :count), batch(:pending, :count), \
    days(:pending, :count), same(1, :count), same(text 'failed', :count), days(:pending, :count), \
    same(2::smallint, :count), same(false, :count), same(1, :count), same(2, :count)";

// What has ended changes a few at a time.
const WRITE_ENDED: &str = "endpoints(:ended, :few), batch(:ended, :few), days(:ended, :few), \
    same(1, :few), same(text 'failed', :few), days(:ended, :few), same(2::smallint, :few), \
    same(false, :few), same(1, :few), same(2, :few)";
