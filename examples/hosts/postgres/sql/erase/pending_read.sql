-- What is pending of an endpoint, in steps, and whether the event was erased. The bounds are as those of
-- `deliveries/page`.
SELECT d.id, coalesce(v.erased, false) AS erased
FROM (
    SELECT id, account_id, event_id, event_created_at FROM deliveries
    WHERE (endpoint, id) > ($1, $2) AND endpoint <= $1
    ORDER BY endpoint, id
    LIMIT $3
) AS d
LEFT JOIN LATERAL (
    SELECT v.body IS NULL AS erased FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
    OFFSET 0
) AS v ON true
ORDER BY d.id;
