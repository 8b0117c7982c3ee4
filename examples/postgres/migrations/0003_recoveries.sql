-- Recoveries of what an endpoint missed. A step of one is a transaction with the deliveries that it
-- makes due.
CREATE TABLE recoveries (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    endpoint   integer NOT NULL REFERENCES endpoints (number) ON DELETE CASCADE,
    shard      smallint NOT NULL,
    -- Recovery, as JSON, with its version.
    recovery   text NOT NULL,
    version    integer NOT NULL,
    started_at timestamptz NOT NULL,
    -- NULL while it runs.
    ended_at   timestamptz
) WITH (fillfactor = 70);

CREATE INDEX recoveries_endpoint ON recoveries (endpoint);

-- One at a time.
CREATE UNIQUE INDEX recoveries_running ON recoveries (endpoint) WHERE ended_at IS NULL;
