BEGIN;
SELECT id, endpoint_id, event_created_at, status, at, attempts, manual, generation, version,
    statement_timestamp() AS now -- of the whole step, and where `at` of its attempts counts from
FROM deliveries
WHERE status IN ('waiting', 'sending') AND at <= statement_timestamp()
ORDER BY at LIMIT 64
FOR UPDATE SKIP LOCKED;

-- Once a minute, this one instead: what a clock that was wrong has put too far ahead.
SELECT id, endpoint_id, event_created_at, status, at, attempts, manual, generation, version,
    statement_timestamp() AS now
FROM deliveries
WHERE status IN ('waiting', 'sending') AND at > statement_timestamp() + interval '12 hours'
ORDER BY at LIMIT 64
FOR UPDATE SKIP LOCKED;

-- $1 the endpoints of these deliveries
SELECT id, disabled, since, failures, first_failures, first_failed_at, reminders,
    generation, version
FROM endpoints WHERE id = ANY ($1::text[]);
-- Delivery::begin on a Row of each. Then all of their writes at once:

-- $1 id, $2 if_version, and $3 to $8 the columns of each
UPDATE deliveries AS d
SET status = w.status, at = w.at, attempts = w.attempts, manual = w.manual,
    generation = w.generation, version = w.version
FROM unnest($1::bigint[], $2::int[], $3::text[], $4::timestamptz[], $5::smallint[],
    $6::boolean[], $7::int[], $8::int[])
    AS w (id, if_version, status, at, attempts, manual, generation, version)
WHERE d.id = w.id AND d.version = w.if_version;
COMMIT; -- Send only now.
