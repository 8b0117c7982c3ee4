CREATE TABLE calls (
    account_id text COLLATE "C" NOT NULL,
    livemode   boolean NOT NULL,
    id         text COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    late       boolean NOT NULL GENERATED ALWAYS AS
        (created_at - started_at NOT BETWEEN interval '0' AND interval '1 hour') STORED,
    -- ... the rest of the call
    PRIMARY KEY (account_id, livemode, id)
);
CREATE INDEX calls_in_time ON calls (account_id, livemode, started_at, id, created_at) WHERE NOT late;
CREATE INDEX calls_late ON calls (account_id, livemode, created_at) WHERE late;
