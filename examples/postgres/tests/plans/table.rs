//! Each statement with its parameters, and what some plans may do that others may not.

/// A file of `sql`, and its parameters as `EXECUTE` takes them: `:name` is filled in.
pub(crate) type Statement = (&'static str, &'static str);

/// A function of the migrations, how it is called, and how many statements it has.
pub(crate) const FUNCTIONS: &[(&str, &[&str], usize)] = &[
    ("add_day", &["SELECT add_day('2026-03-01')"], 0),
    (
        "admit",
        &[
            "SELECT admit('cred_17', 'reads', 60)",
            "SELECT admit('cred_new', 'reads', 60)",
            // By a clock that others were ahead of.
            "SELECT admit('cred_18', 'reads', 60, '2026-03-01 00:00+00')",
        ],
        7,
    ),
    ("drop_day", &["SELECT drop_day('2026-03-01')"], 1),
];

/// What a plan does, and why this one may.
pub(crate) const REASONS: &[(&str, &str, &str)] = &[
    ("accounts", "reads all of accounts", "it lists them"),
    ("accounts", "sorts", "it lists them"),
    ("accounts", "reads many pages", "it counts the calls of each"),
    ("gauges", "reads all of deliveries", "it counts what is pending"),
    ("gauges", "reads all of endpoints", "it counts them"),
    ("drop_day", "reads all of deliveries", "once a day, what is pending and nothing else"),
    ("drop_day", "reads more than it needs of deliveries", "of that, what is of the day"),
    ("missed", "looks into every day of ended", "the thirty days that are kept"),
    ("missed", "sorts", "all of it is listed"),
    ("missed_count", "looks into every day of ended", "the thirty days that are kept"),
    ("missed_count", "reads more than it needs of deliveries", "what is pending of one endpoint"),
    ("missed_count", "reads many pages", "each that was missed, and its event"),
    ("missed_count", "sorts", "each that was missed, by type"),
    ("missed_ended", "looks into every day of ended", "the thirty days that are kept"),
    ("deliveries_page", "looks into every day of ended", "ids go through all days"),
    ("delivery", "looks into every day of ended", "an id does not tell the day"),
    ("last_hour", "looks into every day of ended", "ids go through all days"),
    ("redeliver_ended", "looks into every day of ended", "an id does not tell the day"),
    ("erase_account_events", "looks into every day of events", "in the end there is nothing left"),
    ("erase_account_log", "looks into every day of ended", "in the end there is nothing left"),
    ("erase_account_log", "looks into every day of attempts", "in the end there is nothing left"),
    ("erase_events_read", "looks into every day of events", "any of them may have the number"),
    ("erase_log_read", "looks into every day of ended", "any of them may have the number"),
    ("erase_pending", "reads more than it needs of deliveries", "what is pending of the account"),
];

pub(crate) const STATEMENTS: &[Statement] = &[
    // The public API.
    ("admit", "'cred_17', 'reads', 60"),
    ("call", "':account', true, 'call_:ended'"),
    ("key_by_digest", "sha256('17')"),
    ("note_use", "'cred_17', ':now'"),
    ("page", "':account', true, '-infinity', 'infinity', 'infinity', '', 101"),
    ("ready", ""),
    // Accepting an event.
    ("accept_endpoints", "':account', '{pro}', NULL"),
    ("accept_event", "':account', 'evt_new', ':now', 'call.ended', 'body'"),
    (
        "accept_pending",
        "':account', 'evt_new', ':now', '{:shard}', '{:endpoint}', '{waiting}', '{:now}', '{0}', \
         '{false}', '{1}', '{1}'",
    ),
    (
        "accept_skipped",
        "':account', 'evt_new', ':now', '{:shard}', '{:endpoint}', '{skipped}', '{:now}', '{0}', \
         '{false}', '{1}', '{1}'",
    ),
    // A sender.
    ("sender_poll", "'{:shard}', array[pg_snapshot_xmin(pg_current_snapshot())::text], '{0}', 250"),
    (
        "sender_read",
        "batch(:pending, :count), (days(:pending, :count))[1], (days(:pending, :count))[:count]",
    ),
    ("endpoint_read", "'{1,2,3,:endpoint}'"),
    ("delivery_lock_pending", "batch(:pending, :count)"),
    ("delivery_lock_ended", "endpoints(:ended, :few), batch(:ended, :few), days(:ended, :few)"),
    ("delivery_wait", WRITE_PENDING),
    ("delivery_retire", WRITE_PENDING),
    ("delivery_amend", WRITE_ENDED),
    ("delivery_revive", WRITE_ENDED),
    (
        "attempts_insert",
        "batch(:pending, :count), days(:pending, :count), same(2::smallint, :count), \
         same(false, :count), days(:pending, :count), same(20::bigint, :count), same(text '204', :count), \
         same(false, :count), same(text 'delivered', :count), same(NULL::timestamptz, :count), \
         same(NULL::text, :count), same(false, :count), true, same(NULL::text, :count), \
         same(false, :count), same(NULL::text, :count), (days(:pending, :count))[1], \
         (days(:pending, :count))[:count]",
    ),
    ("endpoint_health", "'{1,2,3,:endpoint}'"),
    ("endpoint_lock", "'{1,2,3,:endpoint}'"),
    (
        "endpoint_write",
        "'{:endpoint}', '{1}', '{NULL}', '{:now}', '{0}', '{1}', '{2}', '{0}', '{NULL}', '{0}'",
    ),
    ("park_read", ":endpoint, 0"),
    ("remind", "'{1,2,3,:shard}', ':now'"),
    ("alerts_insert", "'{:endpoint}', '{77}', ':now', '{alert}'"),
    ("alerts_missed", ":endpoint, 1, 5"),
    ("alerts_drop", "'2026-03-02 00:00+00'"),
    ("owner_claim", "'sender', 4, 4"),
    ("owner_live", "'sender', 4"),
    ("owner_release", "'sender', '{1,2}', '{1,1}'"),
    ("owner_renew", "'sender', '{1,2}', '{1,1}', 4"),
    ("days_add", ""),
    ("days_to_drop", "'2026-02-01 00:00+00'"),
    // Recoveries.
    ("missed", ":shard, :endpoint, '2026-03-25 00:00+00'"),
    (
        "missed_count",
        ":shard, :endpoint, '2026-03-01 00:00+00', ':now', :missed, NULL, '-infinity', 1, '{}'",
    ),
    (
        "missed_ended",
        ":endpoint, '2026-03-01 00:00+00', ':now', :missed, NULL, '-infinity', '{}', 0, 4",
    ),
    ("missed_pending", ":shard, :endpoint, '2026-03-01 00:00+00', ':now', 0, '{}', 0, 4"),
    ("recoveries", "':account'"),
    ("recoveries_running", "'{1,2,3,:shard}', ':now'"),
    ("recovery", "17"),
    ("recovery_forget", ":endpoint"),
    ("recovery_insert", "9999, :shard, '{}', 1, ':now'"),
    ("recovery_lock", "17"),
    ("recovery_pending", ":shard, :endpoint"),
    ("recovery_queue", "batch(:pending, 4)"),
    ("recovery_write", "17, 1, '{}', 2, NULL"),
    ("settled", "'1'"),
    ("transaction", ""),
    // The dashboard.
    ("account_change", "':account', 'pro', true, false"),
    ("account_insert", "'acct_new', NULL, 'UTC', 'pro', true, false"),
    ("account", "':account'"),
    ("accounts", ""),
    ("alerts", "':account'"),
    ("attempts", "batch(:ended, 100), event_at(:ended), event_at(:ended + 400)"),
    ("calls_insert", "':account', true, '{call_new}', '{:now}', '{:now}', '{body}'"),
    (
        "deliveries_page",
        "'{:shard}', '{:endpoint}', NULL, NULL, NULL, '-infinity', 'infinity', 9223372036854775807, \
         51, 4096, NULL",
    ),
    ("delivery", ":endpoint, :ended"),
    ("endpoint", "'whep_:endpoint'"),
    (
        "endpoint_insert",
        "'whep_new', ':account', 1, ':now', 'https://x.example/', false, '', NULL, ':now', 0, 0, 0",
    ),
    ("endpoint_move", ":endpoint, 'https://x.example/', false"),
    ("endpoint_secrets", ":endpoint, 'sealed'"),
    ("endpoint_to_change", "'whep_:endpoint'"),
    ("endpoints", "':account', true"),
    ("gauges", "':now'"),
    (
        "key_insert",
        "'cred_new', ':account', sha256('new'), true, 'a key', 'abcd', '{}', ':now', NULL, NULL, NULL",
    ),
    ("key_revoke", "'cred_17', ':now'"),
    ("keys", "':account'"),
    ("last_hour", "'{:shard}', '{:endpoint}', event_at(:ended)"),
    ("latest_calls", "':account', 20"),
    ("redeliver_ended", ":endpoint, :ended"),
    ("redeliver_pending", ":endpoint, :pending"),
    ("send_now", ":pending, ':now'"),
    // Erasing, and keys.
    ("erase_account", "'acct_4999'"),
    ("erase_account_calls", "':account', 1000"),
    ("erase_account_close", "':account'"),
    ("erase_account_deliveries", ":endpoint, 1000"),
    ("erase_account_events", "':account', 1000"),
    ("erase_account_log", ":endpoint, 1000"),
    ("erase_account_rates", "':account'"),
    ("erase_calls_read", "':account', '', 1000"),
    ("erase_calls_write", "':account', '{call_:ended}', '{body}'"),
    ("erase_events_read", "':account', '', '-infinity', 1000"),
    ("erase_events_write", "':account', events(:ended, :count), days(:ended, :count)"),
    ("erase_log_read", ":endpoint, 0, 1000"),
    (
        "erase_log_write",
        "batch(:ended, :count), days(:ended, :count), days(:ended, :count), same(1::smallint, :count)",
    ),
    ("erase_pending", "':account', '{:shard}', '{:endpoint}', '{evt_:pending}', ':now'"),
    ("rotate_read", "5000"),
];

const WRITE_PENDING: &str = "endpoints(:pending, :count), batch(:pending, :count), \
    days(:pending, :count), same(1, :count), same(text 'failed', :count), days(:pending, :count), \
    same(2::smallint, :count), same(false, :count), same(1, :count), same(2, :count)";

// What has ended changes a few at a time.
const WRITE_ENDED: &str = "endpoints(:ended, :few), batch(:ended, :few), days(:ended, :few), \
    same(1, :few), same(text 'failed', :few), days(:ended, :few), same(2::smallint, :few), \
    same(false, :few), same(1, :few), same(2, :few)";
