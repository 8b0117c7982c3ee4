-- name: claim
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

-- name: forget
-- Forgets senders and processes that were last heard of an hour ago. Those that come back at this moment hold their
-- rows, and nobody waits for them.
WITH silent AS (
    DELETE FROM processes WHERE id = ANY (ARRAY (
        SELECT id FROM processes WHERE told_at < clock_timestamp() - interval '1 hour'
        FOR UPDATE SKIP LOCKED))
)
DELETE FROM senders WHERE id = ANY (ARRAY (
    SELECT id FROM senders WHERE expires_at < clock_timestamp() - interval '1 hour'
    FOR UPDATE SKIP LOCKED));

-- name: leave
-- This sender has ended: the others share what it had. Its row stays for an hour: `erase` waits for what was in flight.
UPDATE senders SET expires_at = clock_timestamp() WHERE id = $1;

-- name: live
-- This sender lives. How many do, itself included; what tells whether the database went back: how often this one has
-- renewed by now, and the history that the server writes; and who else lives.
WITH me AS (
    INSERT INTO senders (id, expires_at, host, pid)
    VALUES ($1, clock_timestamp() + make_interval(secs => $2), $3, $4)
    ON CONFLICT (id) DO UPDATE
        SET expires_at = excluded.expires_at, renewals = senders.renewals + 1
    RETURNING renewals
)
SELECT
    (SELECT count(*) + 1 FROM senders
     WHERE id <> $1 AND expires_at > clock_timestamp()
        AND expires_at <= clock_timestamp() + 2 * make_interval(secs => $2)) AS live,
    me.renewals, left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS timeline, clock_timestamp() AS at,
    ARRAY(SELECT id FROM senders WHERE id <> $1 AND expires_at > clock_timestamp()) AS others
FROM me;

-- name: release
UPDATE shards AS s
SET owner = NULL, expires_at = '-infinity'
FROM unnest($2::smallint[], $3::bigint[]) AS w (shard, epoch)
WHERE s.shard = w.shard AND s.owner = $1 AND s.epoch = w.epoch;

-- name: renew
-- Leases that are still this sender's: nobody has taken the shard since, for the epoch is the same. The COMMIT
-- waits for no standby: a renewal that a failover loses only makes a lease shorter.
UPDATE shards AS s
SET expires_at = clock_timestamp() + make_interval(secs => $4)
FROM unnest($2::smallint[], $3::bigint[]) AS w (shard, epoch)
WHERE s.shard = w.shard AND s.owner = $1 AND s.epoch = w.epoch
RETURNING s.shard, set_config('synchronous_commit', 'local', true);
