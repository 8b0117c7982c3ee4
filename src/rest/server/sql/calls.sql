CREATE TABLE calls (
    account_id text COLLATE "C" NOT NULL,
    livemode   boolean NOT NULL,
    id         text COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    -- ... the rest of the call
    PRIMARY KEY (account_id, livemode, id),
    CONSTRAINT written_in_time
        CHECK (created_at - started_at BETWEEN interval '0' AND interval '1 day')
);
CREATE INDEX calls_by_start ON calls (account_id, livemode, started_at, id, created_at);
