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
