-- The senders that live, where they run, how long their leases last, and the shards that each owns.
SELECT e.id, e.host, e.pid,
    (1000 * extract(epoch FROM e.expires_at - clock_timestamp()))::bigint AS lease_ms,
    ARRAY(SELECT s.shard FROM shards AS s
        WHERE s.owner = e.id AND s.expires_at > clock_timestamp() ORDER BY s.shard) AS shards
FROM senders AS e
WHERE e.expires_at > clock_timestamp()
ORDER BY e.id;
