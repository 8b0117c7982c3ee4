-- What became pending in the shards $1, of each at most $5 rows behind a place in its queue: a
-- transaction $2 and a number $3. One probe of the index for each. The first row has this statement's
-- snapshot, and nothing else.
--
-- With an earlier snapshot $4: only what this one sees and that one did not. Those transactions are the
-- ones that ran then and have ended, and the ones that began later. A number that no transaction of this
-- server has had yet is of a row that came from another server: it is not new.
SELECT pg_current_snapshot()::text AS snapshot,
    NULL AS queued_by, NULL AS id, NULL AS shard, NULL AS endpoint, NULL AS account, NULL AS event_created_at,
    NULL AS status, NULL AS at, NULL AS attempts, NULL AS manual, NULL AS generation, NULL AS version
UNION ALL
SELECT NULL,
    d.queued_by::text, d.id, d.shard, d.endpoint,
    COALESCE((SELECT a.position FROM accounts AS a WHERE a.id = d.account_id), 0),
    d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version
FROM (
    SELECT
        CASE WHEN $4::text IS NULL THEN '0' ELSE COALESCE(
            (SELECT x FROM pg_snapshot_xip($4::text::pg_snapshot) AS x
                WHERE pg_visible_in_snapshot(x, pg_current_snapshot()) ORDER BY x LIMIT 1),
            pg_snapshot_xmax($4::text::pg_snapshot)) END AS first,
        CASE WHEN $4::text IS NULL THEN '18446744073709551615'
            ELSE pg_snapshot_xmax(pg_current_snapshot()) END AS beyond
    OFFSET 0
) AS new
CROSS JOIN unnest($1::smallint[], $2::text[], $3::bigint[]) AS o (shard, queued_by, id)
CROSS JOIN LATERAL (
    SELECT * FROM deliveries AS d
    WHERE d.shard = o.shard AND (d.queued_by, d.id) > (greatest(o.queued_by::xid8, new.first), o.id)
        AND d.queued_by < new.beyond
    ORDER BY d.queued_by, d.id
    LIMIT $5
) AS d;
