-- How far the clock of each living process is ahead of the database's. Who differs finds out here whether
-- all others differ in the same way.
CREATE TABLE clocks (
    id         text COLLATE "C" PRIMARY KEY,
    ahead_us   bigint NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 50);
