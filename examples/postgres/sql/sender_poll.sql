-- What became pending since a snapshot whose xmin is $2, of the shards $1: one probe of the index
-- for each. The first row has this snapshot's bounds, also where nothing is new.
SELECT pg_snapshot_xmin(s.snapshot)::text AS xmin, pg_snapshot_xmax(s.snapshot)::text AS xmax,
    d.id, d.shard, d.endpoint,
    d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version
FROM (SELECT pg_current_snapshot() AS snapshot) AS s
LEFT JOIN (
    SELECT d.*
    FROM unnest($1::smallint[]) AS o (shard)
    CROSS JOIN LATERAL (
        SELECT * FROM deliveries AS d
        WHERE d.shard = o.shard AND d.queued_by >= ($2::text)::xid8
        ORDER BY d.queued_by
    ) AS d
) AS d ON true;
