CREATE TABLE IF NOT EXISTS migrations (
    number integer PRIMARY KEY,
    digest bytea NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
