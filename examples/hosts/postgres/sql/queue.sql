-- name: again
-- Redelivered rows that were pending: their owner finds them by the number of this transaction.
UPDATE deliveries SET queued_by = pg_current_xact_id()
WHERE id = ANY ($1);

-- name: amend
-- Rows that have ended and end otherwise: a late 2xx delivers.
UPDATE ended AS d
SET status = w.status, at = w.at, attempts = w.attempts, manual = w.manual,
    generation = w.generation, version = w.version
FROM unnest(
    $1::integer[], $2::bigint[], $3::timestamptz[], $4::integer[],
    $5::text[], $6::timestamptz[], $7::smallint[], $8::boolean[], $9::integer[], $10::integer[]
) AS w (endpoint, id, event_created_at, if_version,
    status, at, attempts, manual, generation, version)
WHERE d.endpoint = w.endpoint AND d.id = w.id AND d.event_created_at = w.event_created_at
    AND d.version = w.if_version;

-- name: endpoints
SELECT number, disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints
WHERE number = ANY ($1);

-- name: give_up
-- Ends pending deliveries that nobody is to send: none that somebody holds. The next version keeps an attempt
-- in flight from writing over it.
WITH held AS (
    SELECT id FROM deliveries
    WHERE id = ANY ($1)
    ORDER BY id
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM deliveries
    WHERE id = ANY (ARRAY (SELECT id FROM held))
    RETURNING id, shard, endpoint, account_id, event_id, event_created_at,
        attempts, generation, version
)
INSERT INTO ended (
    id, shard, endpoint, account_id, event_id, event_created_at,
    status, at, attempts, manual, generation, version)
SELECT
    id, shard, endpoint, account_id, event_id, event_created_at,
    'parked', $2, attempts, false, generation,
    CASE version WHEN 2147483647 THEN 0 ELSE version + 1 END
FROM gone;

-- name: lock_ended
SELECT d.id, d.endpoint, d.event_created_at,
    d.status, d.at, d.attempts, d.manual, d.generation, d.version
FROM unnest($1::integer[], $2::bigint[], $3::timestamptz[]) AS w (endpoint, id, event_created_at)
JOIN ended AS d
    ON d.endpoint = w.endpoint AND d.id = w.id AND d.event_created_at = w.event_created_at
ORDER BY d.id
FOR UPDATE OF d;

-- name: lock_endpoints
SELECT number, disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints
WHERE number = ANY ($1)
ORDER BY number
FOR UPDATE;

-- name: lock_pending
-- In the order in which everybody locks: by id, and all deliveries before any endpoint.
SELECT id, endpoint, event_created_at, status, at, attempts, manual, generation, version
FROM deliveries
WHERE id = ANY ($1)
ORDER BY id
FOR UPDATE;

-- name: park
-- What is pending of one endpoint, in steps. What others hold is theirs to park. The bounds are as
-- those of `deliveries_page`.
SELECT id, endpoint, event_created_at, status, at, attempts, manual, generation, version
FROM deliveries
WHERE (endpoint, id) > ($1, $2) AND endpoint <= $1
ORDER BY endpoint, id
LIMIT 500
FOR UPDATE SKIP LOCKED;

-- name: retire
-- Pending rows that end: they leave the queue. By their numbers alone, and not by a join: what the
-- planner knows of a queue is of another hour.
WITH gone AS (
    DELETE FROM deliveries
    WHERE id = ANY ($2::bigint[]) AND endpoint = ($1::integer[])[array_position($2, id)]
        AND event_created_at = ($3::timestamptz[])[array_position($2, id)]
        AND version = ($4::integer[])[array_position($2, id)]
    RETURNING id, shard, endpoint, account_id, event_id, event_created_at,
        array_position($2, id) AS n
)
INSERT INTO ended (
    id, shard, endpoint, account_id, event_id, event_created_at,
    status, at, attempts, manual, generation, version)
SELECT
    id, shard, endpoint, account_id, event_id, event_created_at,
    ($5::text[])[n], ($6::timestamptz[])[n], ($7::smallint[])[n], ($8::boolean[])[n],
    ($9::integer[])[n], ($10::integer[])[n]
FROM gone;

-- name: revive
-- Rows that have ended and are pending again: redeliveries. They are new to their shard's owner.
WITH w AS (
    SELECT * FROM unnest(
        $1::integer[], $2::bigint[], $3::timestamptz[], $4::integer[],
        $5::text[], $6::timestamptz[], $7::smallint[], $8::boolean[], $9::integer[], $10::integer[]
    ) AS w (endpoint, id, event_created_at, if_version,
        status, at, attempts, manual, generation, version)
), back AS (
    DELETE FROM ended AS d USING w
    WHERE d.endpoint = w.endpoint AND d.id = w.id AND d.event_created_at = w.event_created_at
        AND d.version = w.if_version
    RETURNING d.id, d.shard, d.endpoint, d.account_id, d.event_id, d.event_created_at,
        w.status, w.at, w.attempts, w.manual, w.generation, w.version
)
INSERT INTO deliveries (
    id, shard, endpoint, account_id, event_id, event_created_at,
    status, at, attempts, manual, generation, version)
SELECT * FROM back;

-- name: wait
-- Pending rows that stay pending, by their numbers alone as where they end. Nothing of an index
-- changes, so the update is HOT.
UPDATE deliveries SET
    status = ($5::text[])[array_position($2, id)],
    at = ($6::timestamptz[])[array_position($2, id)],
    attempts = ($7::smallint[])[array_position($2, id)],
    manual = ($8::boolean[])[array_position($2, id)],
    generation = ($9::integer[])[array_position($2, id)],
    version = ($10::integer[])[array_position($2, id)]
WHERE id = ANY ($2::bigint[]) AND endpoint = ($1::integer[])[array_position($2, id)]
    AND event_created_at = ($3::timestamptz[])[array_position($2, id)]
    AND version = ($4::integer[])[array_position($2, id)];

-- name: write_endpoints
UPDATE endpoints AS e
SET disabled = w.disabled, since = w.since, failures = w.failures,
    generation = w.generation, version = w.version, first_failures = w.first_failures,
    first_failed_at = w.first_failed_at, reminders = w.reminders
FROM unnest(
    $1::integer[], $2::integer[],
    $3::text[], $4::timestamptz[], $5::smallint[], $6::integer[], $7::integer[],
    $8::smallint[], $9::timestamptz[], $10::smallint[]
) AS w (
    number, if_version, disabled, since, failures, generation, version,
    first_failures, first_failed_at, reminders)
WHERE e.number = w.number AND e.version = w.if_version;

-- name: missed_count
-- What an endpoint missed between two deliveries, by type: the condition of RecoveryFilter, on both tables. What was erased
-- cannot be sent again. Each event is looked up by its key, however many there are.
--
-- $1 the shard, $2 the endpoint, $3 created_from, $4 created_until, $5 statuses, $6 ended_generation,
-- $7 failed_from, $8 active_generation, $9 types, $10 after this delivery, $11 up to this one.
SELECT v.type, count(*)
FROM (
    SELECT account_id, event_id, event_created_at
    FROM ended
    WHERE endpoint = $2 AND event_created_at >= $3 AND event_created_at < $4
        AND status = ANY ($5::text[]) AND ($6::integer IS NULL OR generation = $6)
        AND (status IN ('parked', 'skipped') OR event_created_at >= $7)
        AND status <> 'delivered' -- as the index has it
        AND id > $10 AND id <= $11
    UNION ALL
    SELECT account_id, event_id, event_created_at
    FROM deliveries
    WHERE shard = $1 AND endpoint = $2 AND event_created_at >= $3 AND event_created_at < $4
        AND status IN ('waiting', 'sending') AND generation <> $8::integer
        AND id > $10 AND id <= $11
) AS d
CROSS JOIN LATERAL (
    SELECT v.type FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
        AND v.body IS NOT NULL AND (cardinality($9::text[]) = 0 OR v.type = ANY ($9))
    OFFSET 0
) AS v
GROUP BY v.type;

-- name: missed_ended
-- The first missed deliveries that have ended. The event is locked, too: erasing it ends what is
-- pending of it.
SELECT d.id, d.endpoint, d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version
FROM ended AS d
CROSS JOIN LATERAL (
    SELECT FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
        AND v.body IS NOT NULL AND (cardinality($7::text[]) = 0 OR v.type = ANY ($7))
    FOR SHARE
) AS v
WHERE d.endpoint = $1 AND d.event_created_at >= $2 AND d.event_created_at < $3
    AND d.status = ANY ($4::text[]) AND ($5::integer IS NULL OR d.generation = $5)
    AND (d.status IN ('parked', 'skipped') OR d.event_created_at >= $6)
    AND d.status <> 'delivered' -- as the index has it
    AND d.id > $8 AND d.id <= $9
ORDER BY d.id
LIMIT $10
FOR UPDATE OF d;

-- name: missed_newest
-- The newest thousand that an endpoint may have missed, newest first: the library says which of it counts.
-- The bounds are as those of `deliveries_page`.
SELECT *
FROM (
    (
        SELECT id, endpoint, event_created_at, status, at, attempts, manual, generation, version
        FROM ended
        WHERE (endpoint, id) < ($1, 9223372036854775807) AND endpoint >= $1
            AND event_created_at >= $2 AND status <> 'delivered'
        ORDER BY endpoint DESC, id DESC
        LIMIT 1000
    )
    UNION ALL
    (
        SELECT id, endpoint, event_created_at, status, at, attempts, manual, generation, version
        FROM deliveries
        WHERE (endpoint, id) < ($1, 9223372036854775807) AND endpoint >= $1
        ORDER BY endpoint DESC, id DESC
        LIMIT 1000
    )
) AS newest
ORDER BY id DESC
LIMIT 1000;

-- name: missed_pending
-- The first pending deliveries that count as missed. Never SKIP LOCKED: it would miss rows.
SELECT d.id, d.endpoint, d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version
FROM deliveries AS d
CROSS JOIN LATERAL (
    SELECT FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
        AND v.body IS NOT NULL AND (cardinality($6::text[]) = 0 OR v.type = ANY ($6))
    FOR SHARE
) AS v
WHERE d.shard = $1 AND d.endpoint = $2 AND d.event_created_at >= $3 AND d.event_created_at < $4
    AND d.status IN ('waiting', 'sending') AND d.generation <> $5::integer
    AND d.id > $7 AND d.id <= $8
ORDER BY d.id
LIMIT $9
FOR UPDATE OF d;

-- name: missed_window
-- The last of the next deliveries of an endpoint that may be missed: the $5th after $4. No row: fewer are
-- left. Only what an index or a day tells is asked, so that no more rows are read than that. The bounds are
-- as those of `deliveries_page`.
--
-- $1 the endpoint, $2 created_from, $3 created_until.
SELECT id
FROM (
    (
        SELECT endpoint, id FROM ended
        WHERE (endpoint, id) > ($1, $4) AND endpoint <= $1 AND status <> 'delivered'
            AND event_created_at >= date_trunc('day', $2::timestamptz, 'UTC')
            AND event_created_at < date_trunc('day', $3::timestamptz, 'UTC') + interval '1 day'
        ORDER BY endpoint, id
        LIMIT $5
    )
    UNION ALL
    (
        SELECT endpoint, id FROM deliveries
        WHERE (endpoint, id) > ($1, $4) AND endpoint <= $1
        ORDER BY endpoint, id
        LIMIT $5
    )
) AS both_tables
ORDER BY id
OFFSET $5 - 1
LIMIT 1;

-- name: insert_alerts
-- In the transaction that writes the endpoints with these versions.
INSERT INTO alerts (endpoint, version, at, alert)
SELECT w.endpoint, w.version, $3, w.alert
FROM unnest($1::integer[], $2::integer[], $4::text[]) AS w (endpoint, version, alert)
ON CONFLICT DO NOTHING;

-- name: write_alert_missed
-- Alerts that say how much was missed.
UPDATE alerts SET missed = $3
WHERE endpoint = $1 AND version = $2;

-- name: lock_disabled
-- Endpoints that disabled themselves, of shards that this sender owns, whose first reminder is due since $2, or
-- their second since $3: none of those that wait for one takes a place. In pages, after the number $4. Who holds one
-- changes it, and it is looked at again.
SELECT number, id, account_id, shard, disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints
WHERE disabled IN ('gone', 'failing') AND reminders < 2 AND since <= $2 AND (reminders = 0 OR since <= $3)
    AND shard = ANY ($1) AND number > $4
ORDER BY number
LIMIT 100
FOR UPDATE SKIP LOCKED;

-- name: settled
-- Whether every transaction that had begun before this one has ended.
SELECT pg_snapshot_xmin(pg_current_snapshot()) > $1::text::xid8;

-- name: transaction
-- The number of this transaction, which it has from here on.
SELECT pg_current_xact_id()::text;

-- name: lock_recovery
-- A recovery to change, with its endpoint and plan. The endpoint is not locked: if it is disabled
-- meanwhile, what was made due is parked when its attempt begins.
SELECT r.id, r.endpoint, r.shard, r.recovery, r.ended_at, r.paused, r.counted, r.counted_to, r.searched_to,
    e.number, e.id AS endpoint_id, e.account_id,
    e.disabled, e.since, e.failures, e.first_failures, e.first_failed_at, e.reminders,
    e.generation, e.version, a.plan
FROM recoveries AS r
JOIN endpoints AS e ON e.number = r.endpoint
JOIN accounts AS a ON a.id = e.account_id
WHERE r.id = $1
FOR UPDATE OF r;

-- name: count_redeliveries
-- Redeliveries of an endpoint that are under way.
SELECT count(*) FROM deliveries
WHERE shard = $1 AND endpoint = $2 AND manual;

-- name: write_progress
-- How far a locked recovery has counted and searched.
UPDATE recoveries SET counted = $2, counted_to = $3, searched_to = $4
WHERE id = $1;

-- name: write_recovery
-- Only over the version that was read.
UPDATE recoveries SET recovery = $3, version = $4, ended_at = $5
WHERE id = $1 AND version = $2;
