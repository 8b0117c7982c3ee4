-- One process at a time: the lock ends with the transaction. An index of a large table takes minutes.
SET LOCAL statement_timeout = 0;
SELECT pg_advisory_xact_lock(7235908);
CREATE TABLE IF NOT EXISTS migrations (
    number integer PRIMARY KEY,
    digest bytea NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
