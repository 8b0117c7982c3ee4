-- Says how far this process's clock is ahead, and returns what the other living processes said.
WITH mine AS (
    INSERT INTO clocks (id, ahead_us, expires_at)
    SELECT $1, $2::bigint, clock_timestamp() + make_interval(secs => $3)
    FROM set_config('synchronous_commit', 'local', true) -- no standby has to know
    ON CONFLICT (id) DO UPDATE SET ahead_us = excluded.ahead_us, expires_at = excluded.expires_at
)
SELECT ahead_us FROM clocks
WHERE id <> $1 AND expires_at > clock_timestamp()
    -- Later is only what was written before the database's clock was set back.
    AND expires_at <= clock_timestamp() + 2 * make_interval(secs => $3);
