-- Pending rows that end: they leave the queue.
WITH w AS (
    SELECT * FROM unnest(
        $1::integer[], $2::bigint[], $3::timestamptz[], $4::integer[],
        $5::text[], $6::timestamptz[], $7::smallint[], $8::boolean[], $9::integer[], $10::integer[]
    ) AS w (endpoint, id, event_created_at, if_version,
        status, at, attempts, manual, generation, version)
), gone AS (
    DELETE FROM deliveries AS d USING w
    WHERE d.id = w.id AND d.version = w.if_version
    RETURNING d.id, d.shard, d.endpoint, d.account_id, d.event_id, d.event_created_at,
        w.status, w.at, w.attempts, w.manual, w.generation, w.version
)
INSERT INTO ended (
    id, shard, endpoint, account_id, event_id, event_created_at,
    status, at, attempts, manual, generation, version)
SELECT * FROM gone;
