-- $1 account_id(), $2 mode().is_live(), $8 fetch(), and of created().in_microseconds():
-- $3 created_after(), or '-infinity'; $4 created_before(), or 'infinity'
-- $5, $6 started_before(), or 'infinity' and ''; $7 started_from(one day), or '-infinity'
SELECT account_id, livemode, id, started_at, created_at -- ... and the rest
FROM calls
WHERE account_id = $1 AND livemode = $2
    AND created_at >= $3 AND created_at < $4
    AND (started_at, id) < ($5, $6) AND started_at >= $7
ORDER BY started_at DESC, id DESC
LIMIT $8;
