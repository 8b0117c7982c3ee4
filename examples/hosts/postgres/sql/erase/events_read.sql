-- Bodies of an account's events in steps, by id and time.
SELECT id, created_at, body
FROM events
WHERE account_id = $1 AND (id, created_at) > ($2, $3) AND body IS NOT NULL
ORDER BY id, created_at
LIMIT $4;
