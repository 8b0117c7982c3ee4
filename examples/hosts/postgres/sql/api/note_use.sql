-- Not at every request: two processes that read a key at the same time write once, and neither waits for who
-- changes it. Nor does a request wait for the disk, or for a standby: a crash forgets when a key was used.
UPDATE keys SET last_used_at = $2
WHERE id IN (
    SELECT id FROM keys
    WHERE id = ANY ($1)
        AND (last_used_at IS NULL
            OR last_used_at <= $2::timestamptz - interval '1 minute'
            OR last_used_at > $2::timestamptz + interval '1 minute')
    FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING set_config('synchronous_commit', 'off', true);
