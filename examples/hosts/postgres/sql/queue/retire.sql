-- Pending rows that end: they leave the queue. By their numbers alone, and not by a join: what the
-- planner knows of a queue is of another hour.
WITH gone AS (
    DELETE FROM deliveries
    WHERE id = ANY ($2::bigint[]) AND endpoint = ($1::integer[])[array_position($2, id)]
        AND event_created_at = ($3::timestamptz[])[array_position($2, id)]
        AND version = ($4::integer[])[array_position($2, id)]
    RETURNING id, shard, endpoint, account_id, event_id, event_created_at,
        array_position($2, id) AS n
)
INSERT INTO ended (
    id, shard, endpoint, account_id, event_id, event_created_at,
    status, at, attempts, manual, generation, version)
SELECT
    id, shard, endpoint, account_id, event_id, event_created_at,
    ($5::text[])[n], ($6::timestamptz[])[n], ($7::smallint[])[n], ($8::boolean[])[n],
    ($9::integer[])[n], ($10::integer[])[n]
FROM gone;
