-- Ends pending deliveries that nobody is to send: none that somebody holds. The next version keeps an attempt
-- in flight from writing over it.
WITH held AS (
    SELECT id FROM deliveries
    WHERE id = ANY ($1)
    ORDER BY id
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM deliveries
    WHERE id = ANY (ARRAY (SELECT id FROM held))
    RETURNING id, shard, endpoint, account_id, event_id, event_created_at,
        attempts, generation, version
)
INSERT INTO ended (
    id, shard, endpoint, account_id, event_id, event_created_at,
    status, at, attempts, manual, generation, version)
SELECT
    id, shard, endpoint, account_id, event_id, event_created_at,
    'parked', $2, attempts, false, generation,
    CASE version WHEN 2147483647 THEN 0 ELSE version + 1 END
FROM gone;
