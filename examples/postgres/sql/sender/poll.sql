-- What became pending in the shards $1, of each at most $4 rows behind a place in its queue: a
-- transaction $2 and a number $3. One probe of the index for each. The first row has this snapshot's
-- bounds, and nothing else.
SELECT pg_snapshot_xmin(s.snapshot)::text AS xmin, pg_snapshot_xmax(s.snapshot)::text AS xmax,
    NULL AS queued_by, NULL AS id, NULL AS shard, NULL AS endpoint, NULL AS account, NULL AS event_created_at,
    NULL AS status, NULL AS at, NULL AS attempts, NULL AS manual, NULL AS generation, NULL AS version
FROM (SELECT pg_current_snapshot() AS snapshot) AS s
UNION ALL
SELECT NULL, NULL,
    d.queued_by::text, d.id, d.shard, d.endpoint,
    COALESCE((SELECT a.position FROM accounts AS a WHERE a.id = d.account_id), 0),
    d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version
FROM unnest($1::smallint[], $2::text[], $3::bigint[]) AS o (shard, queued_by, id)
CROSS JOIN LATERAL (
    SELECT * FROM deliveries AS d
    WHERE d.shard = o.shard AND (d.queued_by, d.id) > (o.queued_by::xid8, o.id)
    ORDER BY d.queued_by, d.id
    LIMIT $4
) AS d;
