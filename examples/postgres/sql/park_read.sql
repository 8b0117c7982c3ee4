-- What is pending of one endpoint, in steps. What others hold is theirs to park.
SELECT id, endpoint, event_created_at, status, at, attempts, manual, generation, version
FROM deliveries
WHERE shard = $1 AND endpoint = $2 AND id > $3
ORDER BY id
LIMIT 500
FOR UPDATE SKIP LOCKED;
