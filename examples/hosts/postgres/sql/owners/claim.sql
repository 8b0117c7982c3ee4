-- Shards that nobody has. A lease that ends later than any lease was written before the database's clock
-- was set back. A shard that still has an owner was not given back; one whose lease ended more than a minute ago is
-- no news: nobody was there to take it, or it is a backup's.
WITH free AS (
    SELECT shard, owner, expires_at FROM shards
    WHERE owner IS NULL OR expires_at < clock_timestamp()
        OR expires_at > clock_timestamp() + 2 * make_interval(secs => $3)
    ORDER BY random()
    LIMIT $2
    FOR UPDATE SKIP LOCKED)
UPDATE shards AS s
SET owner = $1, epoch = epoch + 1, expires_at = clock_timestamp() + make_interval(secs => $3)
FROM free
WHERE s.shard = free.shard
RETURNING s.shard, s.epoch,
    CASE WHEN free.expires_at > clock_timestamp() - interval '1 minute' THEN free.owner END AS before;
