-- Leases that are still this sender's: nobody has taken the shard since, for the epoch is the same. The COMMIT
-- waits for no standby: a renewal that a failover loses only makes a lease shorter.
UPDATE shards AS s
SET expires_at = clock_timestamp() + make_interval(secs => $4)
FROM unnest($2::smallint[], $3::bigint[]) AS w (shard, epoch)
WHERE s.shard = w.shard AND s.owner = $1 AND s.epoch = w.epoch
RETURNING s.shard, set_config('synchronous_commit', 'local', true);
