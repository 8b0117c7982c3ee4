-- In the order in which everybody locks: by id, and all deliveries before any endpoint.
SELECT id, endpoint, event_created_at, status, at, attempts, manual, generation, version
FROM deliveries
WHERE id = ANY ($1)
ORDER BY id
FOR UPDATE;
