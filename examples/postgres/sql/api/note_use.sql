-- Not at every request: two processes that read the key at the same time write once.
UPDATE keys SET last_used_at = $2
WHERE id = $1
    AND (last_used_at IS NULL
        OR last_used_at <= $2::timestamptz - interval '1 minute'
        OR last_used_at > $2::timestamptz + interval '1 minute');
