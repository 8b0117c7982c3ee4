-- Ended deliveries of an endpoint, in steps: none that somebody holds.
SELECT id, account_id, event_created_at
FROM ended
WHERE (endpoint, id) > ($1, $2) AND endpoint <= $1
ORDER BY endpoint, id
LIMIT $3
FOR UPDATE SKIP LOCKED;
