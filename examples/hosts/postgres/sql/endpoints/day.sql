-- How the latest events of each endpoint stand, by the hour behind $3: at most $5 of each endpoint are looked at. $4 is
-- the beginning of that day and $6 the end of the hours, so that other days are left out, and every row that is read is
-- counted. What is older than $3 is in hours below zero: also what is pending for longer.
SELECT e.number, floor(extract(epoch FROM d.event_created_at - $3) / 3600)::integer AS hour,
    count(*) FILTER (WHERE d.status = 'delivered') AS delivered,
    count(*) FILTER (WHERE d.pending AND d.attempts > 0) AS failing,
    count(*) FILTER (WHERE NOT d.pending AND d.status <> 'delivered') AS missed,
    count(*) FILTER (WHERE d.pending AND d.attempts = 0) AS waiting,
    min(d.event_created_at) AS oldest
FROM unnest($1::smallint[], $2::integer[]) AS e (shard, number)
CROSS JOIN LATERAL (
    (SELECT id, event_created_at, status, attempts, false AS pending FROM ended AS d
     WHERE (d.endpoint, d.id) < (e.number, 9223372036854775807) AND d.endpoint >= e.number
         AND d.event_created_at >= $4 AND d.event_created_at < $6
     ORDER BY d.endpoint DESC, d.id DESC LIMIT $5)
    UNION ALL
    (SELECT id, event_created_at, status, attempts, true FROM deliveries AS d
     WHERE (d.endpoint, d.id) < (e.number, 9223372036854775807) AND d.endpoint >= e.number
     ORDER BY d.endpoint DESC, d.id DESC LIMIT $5)
    ORDER BY id DESC LIMIT $5
) AS d
GROUP BY e.number, hour;
