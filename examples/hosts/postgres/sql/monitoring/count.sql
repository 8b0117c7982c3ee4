-- What is pending, what of it waits behind an endpoint that is suspect, disabled or paused by an operator, how long the oldest
-- other has been due of a shard that nobody owns, and how endpoints stand. What is due of a shard that is
-- owned is told by its owner. The transaction has no number before all is counted: who reads what is new waits
-- for those that have one.
UPDATE gauges AS g
SET counted_at = clock_timestamp(), took = clock_timestamp() - statement_timestamp(),
    pending = d.pending, held = d.held, oldest_due_ms = d.oldest_due_ms,
    active = e.active, suspect = e.suspect, gone = e.gone, failing = e.failing, paused = e.paused
FROM (
    SELECT
        coalesce(sum(p.pending), 0)::bigint AS pending,
        coalesce(sum(p.held), 0)::bigint AS held,
        coalesce(greatest(1000 * extract(epoch FROM
            statement_timestamp() - min(p.oldest) FILTER (WHERE s.expires_at < clock_timestamp())), 0), 0)::bigint
            AS oldest_due_ms
    FROM (
        SELECT
            q.shard,
            count(*) AS pending,
            count(*) FILTER (WHERE q.at <= statement_timestamp() AND h.number IS NOT NULL) AS held,
            min(q.at) FILTER (WHERE h.number IS NULL) AS oldest
        FROM deliveries AS q
        LEFT JOIN (
            SELECT number FROM endpoints
            WHERE disabled IS NOT NULL OR first_failures >= 5
                OR account_id = ANY (ARRAY(SELECT account_id FROM levers WHERE per_second = 0))
                OR id = ANY (ARRAY(SELECT endpoint_id FROM levers WHERE per_second = 0))
                OR EXISTS (SELECT FROM levers
                    WHERE per_second = 0 AND account_id IS NULL AND endpoint_id IS NULL)
        ) AS h ON h.number = q.endpoint
        GROUP BY q.shard
    ) AS p
    JOIN shards AS s ON s.shard = p.shard
) AS d
CROSS JOIN (
    SELECT
        count(*) FILTER (WHERE disabled IS NULL AND first_failures < 5) AS active,
        count(*) FILTER (WHERE disabled IS NULL AND first_failures >= 5) AS suspect,
        count(*) FILTER (WHERE disabled = 'gone') AS gone,
        count(*) FILTER (WHERE disabled = 'failing') AS failing,
        count(*) FILTER (WHERE disabled = 'paused') AS paused
    FROM endpoints
) AS e;
