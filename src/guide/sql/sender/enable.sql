-- 1. Endpoint::enable. $1 id, $2 if_version, $3 to $10 the columns
UPDATE endpoints
SET disabled = $3, since = $4, failures = $5, generation = $6, version = $7,
    first_failures = $8, first_failed_at = $9, reminders = $10
WHERE id = $1 AND version = $2;

-- 2. When that is committed: the first transaction that must have seen it.
SELECT pg_snapshot_xmax(pg_current_snapshot())::text;

-- 3. Once a second until it is true: have all earlier ones ended? $1 the result of 2
SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8;

-- 4. Only now: what was missed is all there. Start a Recovery of it.
INSERT INTO recoveries (endpoint_id, recovery, status, version) VALUES ($1, $2::text::jsonb, $3, $4);
