-- Of shards that this sender owns. Each waits for the transactions that had begun before it: what they
-- accept for an endpoint that they had read as disabled is missed, too. One that was started before $2
-- has waited for long enough.
SELECT id FROM recoveries
WHERE ended_at IS NULL AND NOT paused AND shard = ANY ($1)
    AND (queued_by < pg_snapshot_xmin(pg_current_snapshot()) OR started_at < $2)
ORDER BY id;
