WITH gone AS (
    DELETE FROM calls AS c
    USING (SELECT id FROM calls WHERE account_id = $1 ORDER BY id LIMIT $2) AS w
    WHERE c.account_id = $1 AND c.id = w.id
    RETURNING 1
)
SELECT count(*) FROM gone;
