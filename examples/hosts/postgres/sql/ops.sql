-- name: doctor_server
-- What the server says of itself: its settings, who is connected, how far behind standbys and the archive are, and
-- for how many days from today on there are partitions. Of another role's session, a login without pg_monitor sees the
-- role and the database, and not that it is a client's: background processes lack one of these.
SELECT
    current_setting('server_version_num')::integer AS version,
    current_setting('max_connections')::bigint AS max_connections,
    (SELECT count(*) FROM pg_stat_activity WHERE usesysid IS NOT NULL AND datid IS NOT NULL
        AND backend_type IS DISTINCT FROM 'parallel worker') AS connections,
    (SELECT setting::bigint FROM pg_settings WHERE name = 'max_wal_size') AS max_wal_mb,
    (SELECT setting::bigint FROM pg_settings WHERE name = 'checkpoint_timeout') AS checkpoint_seconds,
    (SELECT setting::bigint FROM pg_settings WHERE name = 'autovacuum_naptime') AS naptime_seconds,
    current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on' AS survives_a_crash,
    current_setting('synchronous_commit') = 'off' AS loses_commits,
    current_setting('synchronous_standby_names') AS standby_names,
    (SELECT count(*) FROM pg_stat_replication) AS standbys,
    current_setting('archive_mode') AS archive_mode,
    extract(epoch FROM clock_timestamp() - a.last_archived_time)::bigint AS archived_seconds_ago,
    coalesce(a.last_failed_time > coalesce(a.last_archived_time, '-infinity'), false) AS archiving_fails,
    (SELECT count(*) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'events'::regclass
        AND right(c.relname, 8) COLLATE "C" > to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD')
    ) AS days_ahead
FROM pg_stat_archiver AS a;

-- name: monitoring_count
-- What is pending, what of it waits behind an endpoint that is suspect, disabled or paused by an operator, how long the oldest
-- other has been due of a shard that nobody owns, of how many accounts something has been due for ten seconds, and how
-- endpoints stand. What is due of a shard that is
-- owned is told by its owner. The transaction has no number before all is counted: who reads what is new waits
-- for those that have one.
UPDATE gauges AS g
SET counted_at = clock_timestamp(), took = clock_timestamp() - statement_timestamp(),
    pending = d.pending, held = d.held, oldest_due_ms = d.oldest_due_ms, late_accounts = d.late_accounts,
    active = e.active, suspect = e.suspect, gone = e.gone, failing = e.failing, paused = e.paused
FROM (
    SELECT
        coalesce(sum(p.pending), 0)::bigint AS pending,
        coalesce(sum(p.due) FILTER (WHERE h.is_held), 0)::bigint AS held,
        coalesce(greatest(1000 * extract(epoch FROM statement_timestamp()
            - min(p.oldest) FILTER (WHERE h.is_held IS NOT TRUE AND s.expires_at < clock_timestamp())), 0), 0)::bigint
            AS oldest_due_ms,
        count(DISTINCT h.account_id)
            FILTER (WHERE NOT h.is_held AND p.oldest < statement_timestamp() - interval '10 seconds') AS late_accounts
    FROM (
        SELECT
            q.shard, q.endpoint, count(*) AS pending,
            count(*) FILTER (WHERE q.at <= statement_timestamp()) AS due, min(q.at) AS oldest
        FROM deliveries AS q
        GROUP BY q.shard, q.endpoint
    ) AS p
    JOIN shards AS s ON s.shard = p.shard
    LEFT JOIN (
        SELECT number, account_id,
            disabled IS NOT NULL OR first_failures >= 5
                OR account_id = ANY (ARRAY(SELECT account_id FROM levers WHERE per_second = 0))
                OR id = ANY (ARRAY(SELECT endpoint_id FROM levers WHERE per_second = 0))
                OR EXISTS (SELECT FROM levers
                    WHERE per_second = 0 AND account_id IS NULL AND endpoint_id IS NULL) AS is_held
        FROM endpoints
    ) AS h ON h.number = p.endpoint
) AS d
CROSS JOIN (
    SELECT
        count(*) FILTER (WHERE disabled IS NULL AND first_failures < 5) AS active,
        count(*) FILTER (WHERE disabled IS NULL AND first_failures >= 5) AS suspect,
        count(*) FILTER (WHERE disabled = 'gone') AS gone,
        count(*) FILTER (WHERE disabled = 'failing') AS failing,
        count(*) FILTER (WHERE disabled = 'paused') AS paused
    FROM endpoints
) AS e;

-- name: monitoring_gauges
-- What was counted last, and how long ago. What was counted later than now was counted before the database's clock was
-- set back.
SELECT abs(extract(epoch FROM clock_timestamp() - counted_at))::double precision AS age,
    pending, held, oldest_due_ms, late_accounts, active, suspect, gone, failing, paused
FROM gauges
WHERE counted_at IS NOT NULL;

-- name: monitoring_hour
-- The most of this hour so far, with what was counted last. Each process tells what is late in its shards.
INSERT INTO gauge_hours AS h (hour, began_at, pending, late_ms)
SELECT extract(hour FROM g.hour AT TIME ZONE 'UTC'), g.hour, g.pending, g.late_ms
FROM (
    SELECT date_trunc('hour', counted_at, 'UTC') AS hour, pending,
        greatest(oldest_due_ms, (
            SELECT max(1000 * (told ->> 'late_seconds')::double precision)::bigint FROM processes
            WHERE told_at > clock_timestamp() - interval '20 seconds')) AS late_ms
    FROM gauges
    WHERE counted_at IS NOT NULL
) AS g
ON CONFLICT (hour) DO UPDATE SET
    began_at = excluded.began_at,
    pending = greatest(excluded.pending, CASE WHEN h.began_at = excluded.began_at THEN h.pending END),
    late_ms = greatest(excluded.late_ms, CASE WHEN h.began_at = excluded.began_at THEN h.late_ms END);

-- name: monitoring_roles
-- Those of the roles $1, which deploy/roles.sql makes, whose rights the login does not have: it is no member of them, nor
-- of who owns the tables.
SELECT r.name
FROM unnest($1::text[]) AS r (name)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r.name AND pg_has_role(oid, 'USAGE'))
    AND NOT EXISTS (
        SELECT FROM pg_class WHERE oid = to_regclass('accounts') AND pg_has_role(relowner, 'USAGE'));

-- name: monitoring_secrets
-- By which keys the secrets of endpoints are sealed: format and number of the key.
SELECT substr(secrets, 1, 2) AS sealed_by, count(*) AS endpoints
FROM endpoints
WHERE disabled IS DISTINCT FROM 'deleted'
GROUP BY 1;

-- name: monitoring_state
-- Shards that nobody owns, recoveries that have not ended, what operators have set, and whether a version with migrations
-- behind $1 has migrated.
SELECT
    (SELECT count(*) FROM shards WHERE expires_at < clock_timestamp()) AS unowned,
    (SELECT count(*) FROM recoveries WHERE ended_at IS NULL) AS recoveries,
    (SELECT count(*) FROM levers WHERE per_second = 0) AS paused,
    (SELECT count(*) FROM levers WHERE per_second > 0) AS throttled,
    (SELECT coalesce(greatest(extract(epoch FROM clock_timestamp() - min(set_at)), 0), 0)::bigint
        FROM levers) AS oldest_lever,
    EXISTS (SELECT FROM migrations WHERE number > $1) AS has_later;

-- name: monitoring_turn
-- A row if it is time to count: $1 seconds after the last count, and $2 times what it took. Whether nobody else counts:
-- then nobody does until this transaction ends. The lock survives neither its session nor the server, and
-- the session of a process that stands still is ended after ten seconds.
SELECT pg_try_advisory_xact_lock(7235912)
FROM gauges
WHERE (clock_timestamp() BETWEEN counted_at
    AND counted_at + greatest(make_interval(secs => $1), $2::double precision * took)) IS NOT TRUE;

-- name: monitoring_unreadable
-- How many deliveries are due in the shards of the sender $1, of endpoints whose sealed secrets begin with one of $2, and
-- for how many seconds the oldest of them is.
SELECT count(*) AS due,
    coalesce(greatest(extract(epoch FROM statement_timestamp() - min(q.at)), 0), 0)::double precision AS oldest
FROM deliveries AS q
JOIN endpoints AS e ON e.number = q.endpoint
WHERE q.shard = ANY (ARRAY(SELECT shard FROM shards WHERE owner = $1))
    AND q.at <= statement_timestamp()
    AND e.disabled IS NULL
    AND substr(e.secrets, 1, 2) = ANY ($2);

-- name: monitoring_whole_tables
-- What counts everything reads tables from end to end, and takes its time. No standby has to know what it finds.
SET LOCAL enable_seqscan = on;
SET LOCAL statement_timeout = '30s';
SET LOCAL synchronous_commit = local;

-- name: processes_tell
-- A process that lives, and how it is. No standby has to know.
INSERT INTO processes (id, told, told_at) VALUES ($1, $2::text::jsonb, clock_timestamp())
ON CONFLICT (id) DO UPDATE SET told = excluded.told, told_at = excluded.told_at
RETURNING set_config('synchronous_commit', 'local', true);

-- name: ring_add
-- A key that seals from now on. This waits for a process that adds another one at the same time, and then adds nothing.
INSERT INTO ring_keys (number, check_value, position)
SELECT $1, $2, 1 + coalesce(max(position), 0) FROM ring_keys
ON CONFLICT DO NOTHING;

-- name: ring_all
SELECT number, check_value FROM ring_keys;

-- name: ring_begin
-- Held until the transaction ends: who frees a number of a key waits for it.
LOCK TABLE ring_keys IN ROW EXCLUSIVE MODE;

-- name: ring_free
-- Frees the numbers of keys that seal nothing any more, but that of the key $1, which seals next.
DELETE FROM ring_keys AS k
WHERE k.number <> $1 AND NOT EXISTS (
    SELECT FROM endpoints AS e
    WHERE e.disabled IS DISTINCT FROM 'deleted'
        AND substr(e.secrets, 2, 1) = set_byte('\x00', 0, k.number)
);

-- name: ring_wait
-- Waits for who seals, and keeps others from it.
SET LOCAL lock_timeout = '2s';
LOCK TABLE ring_keys IN EXCLUSIVE MODE;

-- name: rotate_look
-- As `rotate_read`, for who changes nothing: no row is locked. A deleted endpoint signs nothing any more.
SELECT number, id, secrets
FROM endpoints
WHERE number > $1 AND disabled IS DISTINCT FROM 'deleted'
ORDER BY number
LIMIT 100;

-- name: rotate_read
-- Sealed secrets in steps, by the endpoint's number.
SELECT number, id, secrets, disabled IS NOT DISTINCT FROM 'deleted' AS is_deleted
FROM endpoints
WHERE number > $1
ORDER BY number
LIMIT 100
FOR UPDATE;
