-- The newest thousand that an endpoint may have missed, newest first: the library says which of it counts.
-- The bounds are as those of `deliveries/page`.
SELECT *
FROM (
    (
        SELECT id, endpoint, event_created_at, status, at, attempts, manual, generation, version
        FROM ended
        WHERE (endpoint, id) < ($1, 9223372036854775807) AND endpoint >= $1
            AND event_created_at >= $2 AND status <> 'delivered'
        ORDER BY endpoint DESC, id DESC
        LIMIT 1000
    )
    UNION ALL
    (
        SELECT id, endpoint, event_created_at, status, at, attempts, manual, generation, version
        FROM deliveries
        WHERE (endpoint, id) < ($1, 9223372036854775807) AND endpoint >= $1
        ORDER BY endpoint DESC, id DESC
        LIMIT 1000
    )
) AS newest
ORDER BY id DESC
LIMIT 1000;
