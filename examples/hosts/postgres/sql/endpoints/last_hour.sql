-- Attempts of an endpoint in the last hour, as far as its latest five hundred deliveries tell: a page
-- that looks every second counts no more. What was not sent is not an attempt. The bounds are as those
-- of `deliveries/page`.
SELECT e.number,
    count(*) AS attempts,
    count(*) FILTER (WHERE a.outcome LIKE '2__') AS succeeded,
    count(DISTINCT a.delivery) >= 500 AS more,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY a.took_ms) AS p50_ms,
    percentile_disc(0.99) WITHIN GROUP (ORDER BY a.took_ms) AS p99_ms
FROM unnest($1::smallint[], $2::integer[]) AS e (shard, number)
CROSS JOIN LATERAL (
    (SELECT id, event_created_at FROM ended AS d
     WHERE (d.endpoint, d.id) < (e.number, 9223372036854775807) AND d.endpoint >= e.number
     ORDER BY d.endpoint DESC, d.id DESC LIMIT 500)
    UNION ALL
    (SELECT id, event_created_at FROM deliveries AS d
     WHERE (d.endpoint, d.id) < (e.number, 9223372036854775807) AND d.endpoint >= e.number
     ORDER BY d.endpoint DESC, d.id DESC LIMIT 500)
) AS d
CROSS JOIN LATERAL (
    SELECT * FROM attempts AS a
    WHERE a.delivery = d.id AND a.event_created_at = d.event_created_at
    OFFSET 0
) AS a
WHERE a.began_at >= $3 AND a.outcome <> 'unsent'
GROUP BY e.number;
