-- What operators set to stop sending or to slow it down: of an account, of an endpoint, or of everything where
-- neither is named. They are few.
CREATE TABLE levers (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id  text COLLATE "C" REFERENCES accounts (id) ON DELETE CASCADE,
    endpoint_id text COLLATE "C" REFERENCES endpoints (id) ON DELETE CASCADE,
    -- 0 is a pause.
    per_second  integer NOT NULL CHECK (per_second >= 0),
    set_by      text NOT NULL,
    set_at      timestamptz NOT NULL,
    CHECK (account_id IS NULL OR endpoint_id IS NULL)
);
CREATE UNIQUE INDEX levers_of ON levers (coalesce(account_id, ''), coalesce(endpoint_id, ''));
-- Whether a sender gives its shards back and takes none.
ALTER TABLE senders ADD COLUMN drained boolean NOT NULL DEFAULT false;
