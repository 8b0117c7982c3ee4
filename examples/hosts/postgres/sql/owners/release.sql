UPDATE shards AS s
SET owner = NULL, expires_at = '-infinity'
FROM unnest($2::smallint[], $3::bigint[]) AS w (shard, epoch)
WHERE s.shard = w.shard AND s.owner = $1 AND s.epoch = w.epoch;
