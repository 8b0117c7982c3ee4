WITH gone AS (
    DELETE FROM events AS v
    USING (SELECT id, created_at FROM events WHERE account_id = $1 ORDER BY id LIMIT $2) AS w
    WHERE v.account_id = $1 AND v.id = w.id AND v.created_at = w.created_at
    RETURNING 1
)
SELECT count(*) FROM gone;
