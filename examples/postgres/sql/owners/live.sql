-- This sender lives; how many do.
WITH me AS (
    INSERT INTO senders (id, expires_at)
    VALUES ($1, clock_timestamp() + make_interval(secs => $2))
    ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at
)
SELECT count(*) + 1 FROM senders WHERE id <> $1 AND expires_at > clock_timestamp();
