-- What is pending of one endpoint, in steps. What others hold is theirs to park. The bounds are as
-- those of `deliveries/page`.
SELECT id, endpoint, event_created_at, status, at, attempts, manual, generation, version
FROM deliveries
WHERE (endpoint, id) > ($1, $2) AND endpoint <= $1
ORDER BY endpoint, id
LIMIT 500
FOR UPDATE SKIP LOCKED;
