-- name: now
-- The database's clock, and the start of this transaction: `created_at` of what it writes.
SELECT clock_timestamp() AS at, now() AS started_at;

-- name: wait_for_standby
-- Writes nothing but a message to the WAL. So the COMMIT waits for a standby as any other does, also for what
-- was written before it.
SELECT pg_logical_emit_message(true, 'call-assistant', '');

-- name: endpoints
-- The endpoints that an event of an account goes to: all of them, or one. No lock: events do not
-- wait for each other, nor for senders.
SELECT e.number, e.shard, e.disabled, e.since, e.failures,
    e.first_failures, e.first_failed_at, e.reminders, e.generation, e.version
FROM endpoints AS e
JOIN accounts AS a ON a.id = e.account_id
WHERE e.account_id = $1
    AND a.plan = ANY ($2)
    AND ($3::integer IS NULL OR e.number = $3)
    AND e.disabled IS DISTINCT FROM 'deleted'
ORDER BY e.number;

-- name: event
-- No row is affected if the event was accepted before.
INSERT INTO events (account_id, id, created_at, type, body, traceparent)
VALUES (not_erased($1), $2, $3, $4, $5, $6)
ON CONFLICT (account_id, id, created_at) DO NOTHING;

-- name: pending
INSERT INTO deliveries (
    shard, endpoint, account_id, event_id,
    event_created_at, status, at, attempts, manual, generation, version)
SELECT
    w.shard, w.endpoint, $1, $2,
    $3, w.status, w.at, w.attempts, w.manual, w.generation, w.version
FROM unnest(
    $4::smallint[], $5::integer[],
    $6::text[], $7::timestamptz[], $8::smallint[], $9::boolean[], $10::integer[], $11::integer[]
) AS w (shard, endpoint, status, at, attempts, manual, generation, version)
RETURNING endpoint, id;

-- name: skipped
-- What a disabled endpoint misses has ended already.
INSERT INTO ended (
    id, shard, endpoint, account_id, event_id,
    event_created_at, status, at, attempts, manual, generation, version)
SELECT
    nextval(pg_get_serial_sequence('deliveries', 'id')), w.shard, w.endpoint, $1, $2,
    $3, w.status, w.at, w.attempts, w.manual, w.generation, w.version
FROM unnest(
    $4::smallint[], $5::integer[],
    $6::text[], $7::timestamptz[], $8::smallint[], $9::boolean[], $10::integer[], $11::integer[]
) AS w (shard, endpoint, status, at, attempts, manual, generation, version)
RETURNING endpoint, id;
