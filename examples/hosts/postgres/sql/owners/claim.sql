-- Shards that nobody has. A lease that ends later than any lease was written before the database's clock
-- was set back. A shard that still has an owner was not given back; one whose lease ended more than a minute ago is
-- no news: nobody was there to take it, or it is a backup's. What is kept for another sender that shares is not taken;
-- what is kept for this one is taken first, all of it.
WITH free AS (
    SELECT shard, owner, expires_at FROM shards
    WHERE (owner IS NULL OR expires_at < clock_timestamp()
            OR expires_at > clock_timestamp() + 2 * make_interval(secs => $3))
        AND shard <> ALL (ARRAY(
            SELECT k.shard FROM kept_shards AS k JOIN senders AS e ON e.id = k.sender
            WHERE e.id <> $1 AND NOT e.drained AND e.expires_at > clock_timestamp()
                AND e.expires_at <= clock_timestamp() + 2 * make_interval(secs => $3)))
    ORDER BY shard = ANY (ARRAY(SELECT shard FROM kept_shards WHERE sender = $1)) DESC, random()
    LIMIT greatest($2, (
        SELECT count(*) FROM shards AS s JOIN kept_shards AS k USING (shard)
        WHERE k.sender = $1 AND (s.owner IS NULL OR s.expires_at < clock_timestamp()
            OR s.expires_at > clock_timestamp() + 2 * make_interval(secs => $3))))
    FOR UPDATE SKIP LOCKED)
UPDATE shards AS s
SET owner = $1, epoch = epoch + 1, expires_at = clock_timestamp() + make_interval(secs => $3)
FROM free
WHERE s.shard = free.shard
RETURNING s.shard, s.epoch,
    CASE WHEN free.expires_at > clock_timestamp() - interval '1 minute' THEN free.owner END AS before;
