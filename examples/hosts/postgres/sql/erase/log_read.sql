-- Answers that were kept for an endpoint's deliveries, in steps, and whether the event was erased. The
-- bounds are as those of `deliveries/page`.
SELECT d.id, d.event_created_at, coalesce(v.erased, false) AS erased, a.began_at, a.number,
    coalesce(a.response, '') || E'\n' || coalesce(a.headers, '') AS response
FROM (
    (SELECT id, account_id, event_id, event_created_at FROM ended
     WHERE (endpoint, id) > ($1, $2) AND endpoint <= $1
     ORDER BY endpoint, id LIMIT $3)
    UNION ALL
    (SELECT id, account_id, event_id, event_created_at FROM deliveries
     WHERE (endpoint, id) > ($1, $2) AND endpoint <= $1
     ORDER BY endpoint, id LIMIT $3)
    ORDER BY id
    LIMIT $3
) AS d
LEFT JOIN LATERAL (
    SELECT v.body IS NULL AS erased FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
    OFFSET 0
) AS v ON true
LEFT JOIN LATERAL (
    SELECT * FROM attempts AS a
    WHERE a.delivery = d.id AND a.event_created_at = d.event_created_at
        AND (a.response IS NOT NULL OR a.headers IS NOT NULL)
    OFFSET 0
) AS a ON true
ORDER BY d.id;
