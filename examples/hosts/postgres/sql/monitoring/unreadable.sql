-- How many deliveries are due in the shards of the sender $1, of endpoints whose sealed secrets begin with one of $2, and
-- for how many seconds the oldest of them is.
SELECT count(*) AS due,
    coalesce(greatest(extract(epoch FROM statement_timestamp() - min(q.at)), 0), 0)::double precision AS oldest
FROM deliveries AS q
JOIN endpoints AS e ON e.number = q.endpoint
WHERE q.shard = ANY (ARRAY(SELECT shard FROM shards WHERE owner = $1))
    AND q.at <= statement_timestamp()
    AND e.disabled IS NULL
    AND substr(e.secrets, 1, 2) = ANY ($2);
