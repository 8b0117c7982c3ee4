-- The first events of an account: none that somebody holds.
WITH held AS (
    SELECT id, created_at FROM events
    WHERE account_id = $1
    ORDER BY id
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
DELETE FROM events AS e USING held AS h
WHERE e.account_id = $1 AND e.id = h.id AND e.created_at = h.created_at;
