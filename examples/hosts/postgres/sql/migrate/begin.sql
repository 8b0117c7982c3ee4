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
