-- Calls of an account in steps, by id.
SELECT id, body
FROM calls
WHERE account_id = $1 AND id > $2
ORDER BY id
LIMIT $3;
