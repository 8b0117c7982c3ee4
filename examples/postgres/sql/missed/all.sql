-- What an endpoint may have missed, newest first: the library says which of it counts.
SELECT id, endpoint, event_created_at, status, at, attempts, manual, generation, version
FROM ended
WHERE endpoint = $2 AND event_created_at >= $3 AND status <> 'delivered'
UNION ALL
SELECT id, endpoint, event_created_at, status, at, attempts, manual, generation, version
FROM deliveries
WHERE shard = $1 AND endpoint = $2
ORDER BY id DESC;
