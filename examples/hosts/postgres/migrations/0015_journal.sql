-- What operators and owners have done. It outlives what it was done to, so it refers to nothing.
CREATE TABLE journal (
    -- Its transaction: a reader passes no row of one that has not ended.
    writer xid8 NOT NULL DEFAULT pg_current_xact_id(),
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT now(),
    by text NOT NULL,
    action text NOT NULL,
    account_id text COLLATE "C",
    target text NOT NULL,
    before jsonb,
    after jsonb,
    PRIMARY KEY (writer, id)
);
CREATE INDEX journal_of_account ON journal (account_id);
