-- name: deliveries
-- What it takes to begin: the row as it is now, and the event's bytes. One probe of an index for
-- each, whatever the planner knows of the queue. $2 and $3 are the first and the last of the events'
-- created_at: days outside are not opened.
SELECT d.id, d.endpoint, d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version, e.body,
    e.traceparent
FROM deliveries AS d
CROSS JOIN LATERAL (
    SELECT e.body, e.traceparent FROM events AS e
    WHERE e.account_id = d.account_id AND e.id = d.event_id AND e.created_at = d.event_created_at
        AND e.created_at BETWEEN $2 AND $3
    LIMIT 1
) AS e
WHERE d.id = ANY ($1);

-- name: endpoints
SELECT number, id, account_id, url, allow_loopback, secrets, disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints
WHERE number = ANY ($1);

-- name: log
-- The log. An entry whose transaction was committed although its answer was lost is there already: $18
-- says that one may be. That is looked for between the first and the last of the events' created_at, $19
-- and $20, so that other days are not opened.
INSERT INTO attempts (
    delivery, event_created_at, number, manual, began_at, took_ms,
    outcome, late, status, next_at, response, response_cut,
    headers, headers_cut, reason, signed_t, signed_by)
SELECT
    w.delivery, w.event_created_at, w.number, w.manual, w.began_at, w.took_ms,
    w.outcome, w.late, w.status, w.next_at, w.response, w.response_cut,
    w.headers, w.headers_cut, w.reason, w.signed_t, w.signed_by
FROM unnest(
    $1::bigint[], $2::timestamptz[], $3::smallint[], $4::boolean[], $5::timestamptz[],
    $6::bigint[], $7::text[], $8::boolean[], $9::text[], $10::timestamptz[], $11::text[],
    $12::boolean[], $13::text[], $14::boolean[], $15::text[],
    $16::bigint[], $17::bytea[]
) AS w (delivery, event_created_at, number, manual, began_at, took_ms,
    outcome, late, status, next_at, response, response_cut,
    headers, headers_cut, reason, signed_t, signed_by)
WHERE NOT $18 OR NOT EXISTS (
    SELECT FROM attempts AS a
    WHERE a.delivery = w.delivery AND a.event_created_at = w.event_created_at
        AND a.event_created_at BETWEEN $19 AND $20
        AND a.began_at = w.began_at AND a.number = w.number AND a.outcome = w.outcome);

-- name: poll
-- What became pending in the shards $1, of each at most $5 rows behind a place in its queue: a
-- transaction $2 and a number $3. One probe of the index for each. The first row has this statement's
-- snapshot, and nothing else.
--
-- With an earlier snapshot $4: only what this one sees and that one did not. Those transactions are the
-- ones that ran then and have ended, and the ones that began later. A number that no transaction of this
-- server has had yet is of a row that came from another server: it is not new.
SELECT pg_current_snapshot()::text AS snapshot,
    NULL AS queued_by, NULL AS id, NULL AS shard, NULL AS endpoint, NULL AS account, NULL AS event_created_at,
    NULL AS status, NULL AS at, NULL AS attempts, NULL AS manual, NULL AS generation, NULL AS version
UNION ALL
SELECT NULL,
    d.queued_by::text, d.id, d.shard, d.endpoint,
    COALESCE((SELECT a.position FROM accounts AS a WHERE a.id = d.account_id), 0),
    d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version
FROM (
    SELECT
        CASE WHEN $4::text IS NULL THEN '0' ELSE COALESCE(
            (SELECT x FROM pg_snapshot_xip($4::text::pg_snapshot) AS x
                WHERE pg_visible_in_snapshot(x, pg_current_snapshot()) ORDER BY x LIMIT 1),
            pg_snapshot_xmax($4::text::pg_snapshot)) END AS first,
        CASE WHEN $4::text IS NULL THEN '18446744073709551615'
            ELSE pg_snapshot_xmax(pg_current_snapshot()) END AS beyond
    OFFSET 0
) AS new
CROSS JOIN unnest($1::smallint[], $2::text[], $3::bigint[]) AS o (shard, queued_by, id)
CROSS JOIN LATERAL (
    SELECT * FROM deliveries AS d
    WHERE d.shard = o.shard AND (d.queued_by, d.id) > (greatest(o.queued_by::xid8, new.first), o.id)
        AND d.queued_by < new.beyond
    ORDER BY d.queued_by, d.id
    LIMIT $5
) AS d;

-- name: days_add
-- One at a time, and only while nobody waits for it.
SET LOCAL lock_timeout = '200ms';
SELECT pg_advisory_xact_lock(7235909);
SELECT add_day(((now() AT TIME ZONE 'UTC')::date + days)::date)
FROM generate_series(-30, 7) AS days;

-- name: days_drop
-- Whether nothing that is pending needs the day, so that it is gone now.
SELECT drop_day(to_date($1, 'YYYYMMDD'));

-- name: days_oldest
-- The age in seconds of the oldest day that is kept.
SELECT extract(epoch FROM $1::timestamptz
    - to_date(min(right(c.relname, 8)), 'YYYYMMDD')::timestamp AT TIME ZONE 'UTC')::bigint
FROM pg_inherits AS i
JOIN pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = 'events'::regclass;

-- name: days_overdue
-- Pending deliveries of events before $1, in steps, with all that it takes to end them.
SELECT
    d.id, d.endpoint, d.account_id, d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version,
    e.number AS endpoint_number, e.id AS endpoint_id, e.secrets, e.disabled AS endpoint_disabled,
    e.since AS endpoint_since, e.failures AS endpoint_failures,
    e.first_failures AS endpoint_first_failures, e.first_failed_at AS endpoint_first_failed_at,
    e.reminders AS endpoint_reminders,
    e.generation AS endpoint_generation, e.version AS endpoint_version, v.body
FROM deliveries AS d
LEFT JOIN endpoints AS e ON e.number = d.endpoint
LEFT JOIN LATERAL (
    SELECT v.body FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
    OFFSET 0
) AS v ON true
WHERE d.event_created_at < $1 AND d.id > $2
ORDER BY d.id
LIMIT 500;

-- name: days_to_drop
-- Days whose youngest event is older than what is kept. Days are compared as text: the condition
-- may be asked of any relation's name, before it is known to be a partition's.
SELECT right(c.relname, 8) AS day
FROM pg_inherits AS i
JOIN pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = 'events'::regclass
    AND right(c.relname, 8) COLLATE "C" < to_char($1::timestamptz AT TIME ZONE 'UTC', 'YYYYMMDD')
ORDER BY day;

-- name: days_wait_briefly
-- Who waits for a table makes others wait behind it, so this waits for a moment only.
SET LOCAL lock_timeout = '200ms';

-- name: drop_alerts
-- The oldest alerts before $1, $2 of them at most. Who holds one drops it.
DELETE FROM alerts
WHERE id = ANY (ARRAY (
    SELECT id FROM alerts
    WHERE at < $1
    ORDER BY at
    LIMIT $2
    FOR UPDATE SKIP LOCKED));

-- name: forget_endpoints
-- Of the $2 endpoints behind the number $1, those that were deleted before $3 go, unless something of their log is
-- left. The last number that was looked at; NULL where there is none.
WITH step AS (
    SELECT number, disabled, since FROM endpoints
    WHERE number > $1
    ORDER BY number
    LIMIT $2
), gone AS (
    DELETE FROM endpoints WHERE number = ANY (ARRAY (
        SELECT s.number FROM step AS s
        WHERE s.disabled = 'deleted' AND s.since < $3
            AND NOT EXISTS (SELECT FROM deliveries AS d WHERE d.endpoint = s.number OFFSET 0)
            AND NOT EXISTS (SELECT FROM ended AS d WHERE d.endpoint = s.number OFFSET 0)))
)
SELECT max(number) AS last FROM step;

-- name: running_recoveries
-- Of shards that this sender owns. Each waits for the transactions that had begun before it: what they
-- accept for an endpoint that they had read as disabled is missed, too. One that was started before $2
-- has waited for long enough.
SELECT id FROM recoveries
WHERE ended_at IS NULL AND NOT paused AND shard = ANY ($1)
    AND (queued_by < pg_snapshot_xmin(pg_current_snapshot()) OR started_at < $2)
ORDER BY id;
