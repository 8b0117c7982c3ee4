SELECT account_id, livemode, body
FROM calls
WHERE account_id = $1 AND livemode
ORDER BY started_at DESC, id DESC
LIMIT $2;
