-- The recoveries of an account, newest first.
SELECT r.id, r.recovery, r.ended_at, r.paused, r.counted, r.counted_to, e.id AS endpoint_id,
    e.account_id
FROM recoveries AS r
JOIN endpoints AS e ON e.number = r.endpoint
WHERE e.account_id = $1
ORDER BY r.id DESC;
