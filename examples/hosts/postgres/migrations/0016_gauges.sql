-- What one process has counted for monitoring, for all of them: one row, which no index has, so that writing it again
-- and again leaves nothing behind.
CREATE TABLE gauges (
    -- NULL before the first count.
    counted_at    timestamptz,
    took          interval NOT NULL DEFAULT '0',
    pending       bigint NOT NULL DEFAULT 0,
    held          bigint NOT NULL DEFAULT 0,
    oldest_due_ms bigint NOT NULL DEFAULT 0,
    active        bigint NOT NULL DEFAULT 0,
    suspect       bigint NOT NULL DEFAULT 0,
    gone          bigint NOT NULL DEFAULT 0,
    failing       bigint NOT NULL DEFAULT 0,
    paused        bigint NOT NULL DEFAULT 0
);
INSERT INTO gauges DEFAULT VALUES;
