-- Ends what is pending of events that were erased: it has nothing left to send. The next version
-- keeps an attempt in flight from writing over it.
WITH gone AS (
    DELETE FROM deliveries
    WHERE shard = ANY ($2) AND endpoint = ANY ($3) AND account_id = $1 AND event_id = ANY ($4)
    RETURNING id, shard, endpoint, account_id, event_id, event_created_at,
        attempts, generation, version
)
INSERT INTO ended (
    id, shard, endpoint, account_id, event_id, event_created_at,
    status, at, attempts, manual, generation, version)
SELECT
    id, shard, endpoint, account_id, event_id, event_created_at,
    'parked', $5, attempts, false, generation,
    CASE version WHEN 2147483647 THEN 0 ELSE version + 1 END
FROM gone;
