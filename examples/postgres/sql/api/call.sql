SELECT account_id, livemode, body
FROM calls
WHERE account_id = $1 AND livemode = $2 AND id = $3;
