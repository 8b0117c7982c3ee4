-- Attempts of an endpoint in the last hour, as far as its latest five hundred deliveries tell: a page
-- that looks every second counts no more. What was not sent is not an attempt.
SELECT e.number,
    count(*) AS attempts,
    count(*) FILTER (WHERE a.outcome LIKE '2__') AS succeeded,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY a.took_ms) AS p50_ms,
    percentile_disc(0.99) WITHIN GROUP (ORDER BY a.took_ms) AS p99_ms
FROM unnest($1::smallint[], $2::integer[]) AS e (shard, number)
CROSS JOIN LATERAL (
    (SELECT id, event_created_at FROM ended AS d
     WHERE d.endpoint = e.number
     ORDER BY id DESC LIMIT 500)
    UNION ALL
    (SELECT id, event_created_at FROM deliveries AS d
     WHERE d.shard = e.shard AND d.endpoint = e.number
     ORDER BY id DESC LIMIT 500)
) AS d
JOIN attempts AS a ON a.delivery = d.id AND a.event_created_at = d.event_created_at
WHERE a.began_at >= $3 AND a.outcome <> 'unsent'
GROUP BY e.number;
