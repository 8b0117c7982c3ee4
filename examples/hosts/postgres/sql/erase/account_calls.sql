-- An account's calls in steps, each a range of its ids.
DELETE FROM calls
WHERE account_id = $1 AND id <= (
    SELECT max(id) FROM (
        SELECT id FROM calls WHERE account_id = $1 ORDER BY id LIMIT $2
    ) AS step);
