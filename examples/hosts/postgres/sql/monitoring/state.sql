-- Shards that nobody owns, recoveries that have not ended, and what operators have set.
SELECT
    (SELECT count(*) FROM shards WHERE expires_at < clock_timestamp()) AS unowned,
    (SELECT count(*) FROM recoveries WHERE ended_at IS NULL) AS recoveries,
    (SELECT count(*) FROM levers WHERE per_second = 0) AS paused,
    (SELECT count(*) FROM levers WHERE per_second > 0) AS throttled,
    (SELECT coalesce(greatest(extract(epoch FROM clock_timestamp() - min(set_at)), 0), 0)::bigint
        FROM levers) AS oldest_lever;
