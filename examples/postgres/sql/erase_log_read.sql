-- Answers that were kept for an endpoint's deliveries, in steps, and whether the event was erased.
SELECT d.id, d.event_created_at, v.body IS NULL AS erased, a.began_at, a.number,
    coalesce(a.response, '') || E'\n' || coalesce(a.headers, '') AS response
FROM (
    SELECT id, account_id, event_id, event_created_at FROM ended
    WHERE endpoint = $2 AND id > $3
    UNION ALL
    SELECT id, account_id, event_id, event_created_at FROM deliveries
    WHERE shard = $1 AND endpoint = $2 AND id > $3
    ORDER BY id
    LIMIT $4
) AS d
JOIN events AS v
    ON v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
LEFT JOIN attempts AS a
    ON a.delivery = d.id AND a.event_created_at = d.event_created_at AND (a.response IS NOT NULL OR a.headers IS NOT NULL)
ORDER BY d.id;
