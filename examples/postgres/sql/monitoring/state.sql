-- Shards that nobody owns, and recoveries that have not ended.
SELECT
    (SELECT count(*) FROM shards WHERE expires_at < clock_timestamp()) AS unowned,
    (SELECT count(*) FROM recoveries WHERE ended_at IS NULL) AS recoveries;
