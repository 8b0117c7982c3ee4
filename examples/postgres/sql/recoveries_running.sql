-- Of shards that this sender owns.
SELECT id FROM recoveries
WHERE ended_at IS NULL AND shard = ANY ($1)
ORDER BY id;
