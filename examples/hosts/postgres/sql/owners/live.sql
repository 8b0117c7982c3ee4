-- This sender lives. How many do that are not drained, itself included; whether it is drained; what tells whether the
-- database went back: how often this one has renewed by now, and the history that the server writes; who else lives;
-- and the shards that operators have moved to this one, or to another one that is not drained.
WITH me AS (
    INSERT INTO senders (id, expires_at, host, pid)
    VALUES ($1, clock_timestamp() + make_interval(secs => $2), $3, $4)
    ON CONFLICT (id) DO UPDATE
        SET expires_at = excluded.expires_at, renewals = senders.renewals + 1
    RETURNING renewals, drained
), sharing AS (
    SELECT id FROM senders
    WHERE id <> $1 AND NOT drained AND expires_at > clock_timestamp()
        AND expires_at <= clock_timestamp() + 2 * make_interval(secs => $2)
)
SELECT
    (SELECT count(*) + 1 FROM sharing) AS live,
    me.renewals, me.drained, left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS timeline, clock_timestamp() AS at,
    ARRAY(SELECT id FROM senders WHERE id <> $1 AND expires_at > clock_timestamp()) AS others,
    ARRAY(SELECT shard FROM kept_shards WHERE sender = $1 AND NOT me.drained) AS kept,
    ARRAY(SELECT shard FROM kept_shards WHERE sender IN (SELECT id FROM sharing)) AS kept_elsewhere
FROM me;
