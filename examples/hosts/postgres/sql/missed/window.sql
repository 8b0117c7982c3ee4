-- The last of the next deliveries of an endpoint that may be missed: the $5th after $4. No row: fewer are
-- left. Only what an index or a day tells is asked, so that no more rows are read than that. The bounds are
-- as those of `deliveries/page`.
--
-- $1 the endpoint, $2 created_from, $3 created_until.
SELECT id
FROM (
    (
        SELECT endpoint, id FROM ended
        WHERE (endpoint, id) > ($1, $4) AND endpoint <= $1 AND status <> 'delivered'
            AND event_created_at >= date_trunc('day', $2::timestamptz, 'UTC')
            AND event_created_at < date_trunc('day', $3::timestamptz, 'UTC') + interval '1 day'
        ORDER BY endpoint, id
        LIMIT $5
    )
    UNION ALL
    (
        SELECT endpoint, id FROM deliveries
        WHERE (endpoint, id) > ($1, $4) AND endpoint <= $1
        ORDER BY endpoint, id
        LIMIT $5
    )
) AS both_tables
ORDER BY id
OFFSET $5 - 1
LIMIT 1;
