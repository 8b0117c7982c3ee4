-- name: any
-- Whether any migration was ever applied.
SELECT to_regclass('migrations') IS NOT NULL;

-- name: applied
SELECT number, digest, applied_at FROM migrations ORDER BY number;

-- name: begin
-- Who migrates waits for as long as it takes.
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
-- One process at a time, until its connection ends.
SELECT pg_advisory_lock(7235908);
CREATE TABLE IF NOT EXISTS migrations (
    number integer PRIMARY KEY,
    digest bytea NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: note
INSERT INTO migrations (number, digest)
VALUES ($1, $2);

-- name: settings
-- A setting that this session was asked for and does not have. No row: it has those that matter most.
SELECT w.name
FROM (VALUES
    ('plan_cache_mode', 'force_generic_plan'), ('enable_seqscan', 'off'), ('jit', 'off')
) AS w (name, value)
WHERE current_setting(w.name) <> w.value
UNION ALL
SELECT w.name
FROM (VALUES ('statement_timeout'), ('lock_timeout')) AS w (name)
WHERE current_setting(w.name) = '0'
LIMIT 1;

-- name: wait_briefly
-- Who waits for a table makes others wait behind it.
SET LOCAL lock_timeout = '2s';
