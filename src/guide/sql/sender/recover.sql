BEGIN;
-- $1 the recovery
SELECT recovery::text, version FROM recoveries WHERE id = $1 AND status = 'running' FOR UPDATE;

-- $1 its endpoint
SELECT disabled, since, failures, first_failures, first_failed_at, reminders,
    generation, version
FROM endpoints WHERE id = $1;

-- For Recovery::room. $1 the endpoint
SELECT count(*) FROM deliveries
WHERE endpoint_id = $1 AND manual AND status IN ('waiting', 'sending');

-- $1 to $8 as above, $9 after() or 0, $10 room(). Never SKIP LOCKED: it would miss rows.
SELECT id, endpoint_id, event_created_at, status, at, attempts, manual, generation, version,
    statement_timestamp() AS now
FROM deliveries AS d
WHERE endpoint_id = $1 AND event_created_at >= $2 AND event_created_at < $3
    AND (status = ANY ($4::text[]) AND ($5::int IS NULL OR generation = $5)
            AND (status IN ('parked', 'skipped') OR event_created_at >= $6)
        OR status IN ('waiting', 'sending') AND generation <> $7)
    AND (cardinality($8::text[]) = 0 OR EXISTS (SELECT FROM events AS e
        WHERE e.account_id = d.account_id AND e.id = d.event_id AND e.type = ANY ($8)))
    AND id > $9
ORDER BY id LIMIT $10
FOR UPDATE;
-- Recovery::step, and the UPDATE of deliveries as in step 2.

-- $1 the recovery, $2 if_version, $3 to $5 the columns
UPDATE recoveries SET recovery = $3::text::jsonb, status = $4, version = $5
WHERE id = $1 AND version = $2;
COMMIT; -- All of it or nothing.
