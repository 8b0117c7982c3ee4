-- Pending deliveries of an endpoint, in steps: none that somebody holds. The bounds are as those of
-- `deliveries/page`.
SELECT id, account_id, event_created_at
FROM deliveries
WHERE (endpoint, id) > ($1, $2) AND endpoint <= $1
ORDER BY endpoint, id
LIMIT $3
FOR UPDATE SKIP LOCKED;
