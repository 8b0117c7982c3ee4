-- The senders that live, where they run, how long their leases last, the shards that each owns, and those kept for it.
SELECT e.id, e.host, e.pid, e.drained,
    (1000 * extract(epoch FROM e.expires_at - clock_timestamp()))::bigint AS lease_ms,
    ARRAY(SELECT s.shard FROM shards AS s
        WHERE s.owner = e.id AND s.expires_at > clock_timestamp() ORDER BY s.shard) AS shards,
    ARRAY(SELECT k.shard FROM kept_shards AS k WHERE k.sender = e.id ORDER BY k.shard) AS kept
FROM senders AS e
WHERE e.expires_at > clock_timestamp()
ORDER BY e.id;
