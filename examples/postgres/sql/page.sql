-- $3, $4: the bounds of created_at. $5, $6: the position before which the rows come. $7: no call
-- that was created at $3 or later started earlier than this.
SELECT account_id, livemode, body
FROM calls
WHERE account_id = $1 AND livemode = $2
    AND created_at >= $3 AND created_at < $4
    AND (started_at, id) < ($5, $6) AND started_at >= $7
ORDER BY started_at DESC, id DESC
LIMIT $8;
