-- An account's events in steps, each a range of its ids.
WITH gone AS (
    DELETE FROM events
    WHERE account_id = $1 AND id <= (
        SELECT max(id) FROM (
            SELECT id FROM events WHERE account_id = $1 ORDER BY id LIMIT $2
        ) AS step)
    RETURNING 1
)
SELECT count(*) FROM gone;
