-- Has a shard kept for a sender, or shared as any other, and returns for whom it was kept.
UPDATE kept_shards AS k SET sender = $2
FROM (SELECT shard, sender FROM kept_shards WHERE shard = $1 FOR UPDATE) AS before
WHERE k.shard = before.shard
RETURNING before.sender AS before;
