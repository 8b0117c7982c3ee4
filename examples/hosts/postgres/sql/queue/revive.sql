-- Rows that have ended and are pending again: redeliveries. They are new to their shard's owner.
WITH w AS (
    SELECT * FROM unnest(
        $1::integer[], $2::bigint[], $3::timestamptz[], $4::integer[],
        $5::text[], $6::timestamptz[], $7::smallint[], $8::boolean[], $9::integer[], $10::integer[]
    ) AS w (endpoint, id, event_created_at, if_version,
        status, at, attempts, manual, generation, version)
), back AS (
    DELETE FROM ended AS d USING w
    WHERE d.endpoint = w.endpoint AND d.id = w.id AND d.event_created_at = w.event_created_at
        AND d.version = w.if_version
    RETURNING d.id, d.shard, d.endpoint, d.account_id, d.event_id, d.event_created_at,
        w.status, w.at, w.attempts, w.manual, w.generation, w.version
)
INSERT INTO deliveries (
    id, shard, endpoint, account_id, event_id, event_created_at,
    status, at, attempts, manual, generation, version)
SELECT * FROM back;
