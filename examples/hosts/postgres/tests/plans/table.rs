//! Each statement with its parameters, and what some plans may do that others may not.

/// A file of `sql`, and its parameters as `EXECUTE` takes them: `:name` is filled in.
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
    ("monitoring/count", "reads all of deliveries", "it counts what is pending"),
    ("monitoring/count", "reads all of endpoints", "it counts them"),
    (
        "monitoring/count",
        "reads more than it needs of endpoints",
        "those that are suspect, at once",
    ),
    ("monitoring/secrets", "reads all of endpoints", "it counts them"),
    ("ring/free", "reads all of endpoints", "twice for each `rotate-keys`, which seals them all"),
    ("monitoring/unreadable", "reads all of endpoints", "only while a key is missing"),
    (
        "monitoring/unreadable",
        "reads more than it needs of endpoints",
        "only while a key is missing",
    ),
    ("monitoring/state", "reads all of recoveries", "by the index of those that run"),
    ("days/to_drop", "reads more than it needs of pg_class", "the catalog, once a minute"),
    ("drop_day", "reads all of deliveries", "once a day, what is pending and nothing else"),
    ("drop_day", "reads more than it needs of deliveries", "of that, what is of the day"),
    ("days/drop", "reads all of deliveries", "once a day, what is pending and nothing else"),
    ("days/drop", "reads more than it needs of deliveries", "of that, what is of the day"),
    (
        "days/overdue",
        "reads more than it needs of deliveries",
        "only while a day is kept for longer",
    ),
    ("days/overdue", "reads all of deliveries", "only while a day is kept for longer"),
    ("days/add", "reads many pages", "it makes the days that are missing, here thirty-eight"),
    ("missed/window", "reads more than it needs of ended", "what was delivered in between"),
    ("missed/newest", "looks into every day of ended", "the thirty days that are kept"),
    ("missed/window", "looks into every day of ended", "the thirty days that are kept"),
    ("missed/count", "looks into every day of ended", "the thirty days that are kept"),
    ("missed/ended", "looks into every day of ended", "the thirty days that are kept"),
    ("deliveries/page", "looks into every day of ended", "ids go through all days"),
    ("deliveries/one", "looks into every day of ended", "an id does not tell the day"),
    ("endpoints/day", "sorts", "the latest of two lists, each of which is limited"),
    ("endpoints/last_hour", "looks into every day of ended", "ids go through all days"),
    ("deliveries/redeliver_ended", "looks into every day of ended", "an id does not tell the day"),
    ("erase/account_events", "looks into every day of events", "in the end there is nothing left"),
    ("erase/account_events", "reads many pages", "where a quarter of a million is the account's"),
    ("missed/newest", "sorts", "what is pending of one endpoint, while much of it is"),
    ("erase/events_read", "looks into every day of events", "any of them may have the number"),
    ("erase/log_read", "looks into every day of ended", "any of them may have the number"),
    ("erase/account_events", "reads all of events", "where a quarter of them is the account's"),
    ("erase/account_events", "reads more than it needs of events", "a page of that quarter"),
    ("erase/account_left", "looks into every day of events", "in the end there is nothing left"),
    ("erase/ended_lock", "looks into every day of ended", "in the end there is nothing left"),
    ("erase/endpoints", "reads many pages", "one probe of each day for an endpoint"),
    ("erase/endpoints", "looks into every day of ended", "any of them may have one"),
];

pub(crate) const STATEMENTS: &[Statement] = &[
    // The public API.
    ("api/admit", "'{cred_17,cred_18}', '{reads,reads}', '{600,600}', '{1,2}'"),
    ("api/call", "'{:account,acct_1}', '{true,true}', '{call_:ended,call_1}'"),
    ("api/keys", "ARRAY[sha256('17'), sha256('nobody')]"),
    ("api/note_use", "'{cred_17,cred_18}', ':now'"),
    // The first page of a walk, one in the middle, and the last; a poll; the pages of a sync; all of them at once.
    (
        "api/page",
        "'{:account}', '{true}', '{-infinity}', '{infinity}', '{infinity}', '{\"\"}', '{101}'",
    ),
    (
        "api/page",
        "'{:account}', '{true}', '{-infinity}', '{infinity}', '{2026-03-15 00:00+00}', '{call_}', '{101}'",
    ),
    (
        "api/page",
        "'{:account}', '{true}', '{-infinity}', '{infinity}', '{2026-03-01 00:30+00}', '{call_}', '{101}'",
    ),
    (
        "api/page",
        "'{:account}', '{true}', '{2026-03-31 22:00+00}', '{infinity}', '{infinity}', '{\"\"}', '{101}'",
    ),
    (
        "api/page",
        "'{:account}', '{true}', '{2026-03-10 00:00+00}', '{infinity}', '{infinity}', '{\"\"}', '{101}'",
    ),
    (
        "api/page",
        "'{:account}', '{true}', '{2026-03-10 00:00+00}', '{infinity}', '{2026-03-20 00:00+00}', '{\"\"}', '{101}'",
    ),
    (
        "api/page",
        "'{:account,:account,acct_1,:account,acct_2,:account}', '{true,true,true,true,true,true}', \
         '{-infinity,-infinity,-infinity,2026-03-31 22:00+00,2026-03-10 00:00+00,2026-03-10 00:00+00}', \
         '{infinity,infinity,infinity,infinity,infinity,infinity}', \
         '{infinity,2026-03-15 00:00+00,2026-03-01 00:30+00,infinity,infinity,2026-03-20 00:00+00}', \
         '{\"\",call_,call_,\"\",\"\",\"\"}', '{101,101,2,101,2,101}'",
    ),
    ("commit/waits", ""),
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
    ("alerts/remind", "'{1,2,3,:shard}', ':now', ':now', 0"),
    ("alerts/insert", "'{:endpoint}', '{77}', ':now', '{alert}'"),
    ("alerts/missed", ":endpoint, 1, 5"),
    ("alerts/drop", "'2026-03-02 00:00+00', 2000"),
    ("clocks/now", ""),
    ("owners/forget", ""),
    ("owners/claim", "'sender', 4, 4"),
    ("owners/live", "'sender', 4, 'host', 17"),
    ("owners/release", "'sender', '{1,2}', '{1,1}'"),
    ("owners/renew", "'sender', '{1,2}', '{1,1}', 4"),
    ("owners/leave", "'sender'"),
    ("days/add", ""),
    ("days/wait_briefly", ""),
    ("days/drop", "'20260301'"),
    ("days/oldest", "':now'"),
    ("days/overdue", "'2026-02-01 00:00+00', 0"),
    ("days/to_drop", "'2026-02-01 00:00+00'"),
    // Recoveries.
    ("missed/newest", ":endpoint, '2026-03-25 00:00+00'"),
    ("missed/window", ":endpoint, '2026-03-01 00:00+00', ':now', 0, 500"),
    (
        "missed/count",
        ":shard, :endpoint, '2026-03-01 00:00+00', ':now', :missed, NULL, '-infinity', 1, '{}', \
         :ended - 500, :ended",
    ),
    (
        "missed/ended",
        ":endpoint, '2026-03-01 00:00+00', ':now', :missed, NULL, '-infinity', '{}', 0, :ended, 4",
    ),
    (
        "missed/pending",
        ":shard, :endpoint, '2026-03-01 00:00+00', ':now', 0, '{}', 0, 9223372036854775807, 4",
    ),
    ("recoveries/all", "':account'"),
    ("recoveries/running", "'{1,2,3,:shard}', ':now'"),
    ("recoveries/one", "17"),
    ("recoveries/forget", ":endpoint"),
    ("recoveries/insert", "9999, :shard, '{}', 1, ':now', NULL"),
    ("recoveries/lock", "17"),
    ("recoveries/pending", ":shard, :endpoint"),
    ("recoveries/progress", "17, 2000, 2000, NULL"),
    ("recoveries/pause", "17, true"),
    ("recoveries/endpoints", "NULL, 17, 100"),
    ("queue/again", "batch(:pending, 4)"),
    ("recoveries/write", "17, 1, '{}', 2, NULL"),
    ("endpoints/settled", "'1'"),
    ("endpoints/transaction", ""),
    // The dashboard.
    ("accounts/change", "':account', 'pro', true, false, 'UTC'"),
    ("accounts/insert", "'acct_new', NULL, 'UTC', 'pro', true, false"),
    ("accounts/lock", "':account'"),
    ("accounts/one", "':account'"),
    ("accounts/page", "0, 1001"),
    ("accounts/search", "0, 51, 'acct_123'"),
    ("accounts/timezone", "'Europe/Oslo'"),
    ("alerts/latest", "':account'"),
    ("alerts/turn", ""),
    ("alerts/new", ""),
    ("alerts/number", ""),
    ("alerts/last", ""),
    ("alerts/after", "17, 100"),
    ("alerts/one", "17"),
    ("alerts/acknowledge", "17, 'somebody', ':now'"),
    ("levers/all", ""),
    ("levers/set", "':account', NULL, 0, 'operator', ':now'"),
    ("levers/undo", "17"),
    ("levers/forget", "':account', NULL"),
    ("levers/senders", ""),
    ("levers/pending", "':account', 0, 0, 'ping'"),
    ("logins/write", "sha256('17'), ':account', ':now', false"),
    ("logins/one", "sha256('17')"),
    ("logins/end", "':account'"),
    ("deliveries/attempts", "batch(:ended, 100), event_at(:ended), event_at(:ended + 400)"),
    ("calls/insert", "':account', true, '{call_new}', '{:now}', '{:now}', '{body}'"),
    (
        "deliveries/page",
        "'{:shard}', '{:endpoint}', NULL, NULL, NULL, '-infinity', 'infinity', 9223372036854775807, \
         51, 4096, NULL, false",
    ),
    ("deliveries/one", ":endpoint, :ended"),
    ("endpoints/one", "'whep_:endpoint'"),
    (
        "endpoints/insert",
        "'whep_new', ':account', 1, ':now', 'https://x.example/', false, '', NULL, ':now', 0, 0, 0, NULL",
    ),
    ("endpoints/edit", ":endpoint, true, 'what it is for', 'https://x.example/', false"),
    ("endpoints/count", "':account'"),
    ("endpoints/secrets", ":endpoint, 'sealed'"),
    ("endpoints/change", "'whep_:endpoint'"),
    ("endpoints/all", "':account', true"),
    ("monitoring/count", ""),
    ("monitoring/gauges", ""),
    ("monitoring/rights", "'{api,sender,operator}'"),
    ("monitoring/secrets", ""),
    ("monitoring/state", ""),
    ("doctor/server", ""),
    ("journal/insert", "'ada', 'key.revoked', ':account', 'cred_17', NULL, NULL"),
    ("journal/after", "'0', 0, 1000"),
    ("journal/reached", "'1', 1"),
    ("journal/erase", "':account'"),
    ("monitoring/turn", "5, 20"),
    ("monitoring/unreadable", "'sender-0', '{\"\\\\x0101\"}'"),
    ("monitoring/whole_tables", ""),
    (
        "accounts/insert_key",
        "'cred_new', ':account', sha256('new'), true, 'a key', 'abcd', '{}', ':now', NULL, NULL, NULL",
    ),
    ("accounts/revoke_key", "'cred_17', ':now'"),
    ("accounts/keys", "':account'"),
    ("endpoints/last_hour", "'{:shard}', '{:endpoint}', event_at(:ended)"),
    (
        "endpoints/day",
        "'{:shard}', '{:endpoint}', '2026-03-28 12:00+00', '2026-03-28 00:00+00', 2000, \
         '2026-03-29 12:00+00'",
    ),
    ("levers/of_account", "':account'"),
    ("calls/latest", "':account', 20"),
    ("deliveries/redeliver_ended", ":endpoint, :ended"),
    ("deliveries/redeliver_pending", ":endpoint, :pending"),
    ("deliveries/send_now", ":pending, ':now'"),
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
    ("endpoints/forget", "5000, 1000, '2026-03-02 00:00+00'"),
    ("ring/add", "7, sha256('a key')"),
    ("ring/all", ""),
    ("ring/begin", ""),
    ("ring/free", "1"),
    ("ring/wait", ""),
    ("rotate/look", "5000"),
    ("rotate/read", "5000"),
];

const WRITE_PENDING: &str = "endpoints(:pending, :count), batch(:pending, :count), \
    days(:pending, :count), same(1, :count), same(text 'failed', :count), days(:pending, :count), \
    same(2::smallint, :count), same(false, :count), same(1, :count), same(2, :count)";

// What has ended changes a few at a time.
const WRITE_ENDED: &str = "endpoints(:ended, :few), batch(:ended, :few), days(:ended, :few), \
    same(1, :few), same(text 'failed', :few), days(:ended, :few), same(2::smallint, :few), \
    same(false, :few), same(1, :few), same(2, :few)";
