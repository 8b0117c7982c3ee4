-- An endpoint's pending deliveries and their log in steps, each a range of their ids. The bounds are as
-- those of `deliveries/page`.
WITH gone AS (
    DELETE FROM deliveries
    WHERE endpoint >= $1 AND (endpoint, id) <= ($1, (
        SELECT max(id) FROM (
            SELECT id FROM deliveries
            WHERE endpoint >= $1 AND endpoint <= $1
            ORDER BY endpoint, id LIMIT $2
        ) AS step))
    RETURNING id, event_created_at
), log AS (
    DELETE FROM attempts
    WHERE delivery = ANY (ARRAY (SELECT id FROM gone))
        AND event_created_at >= (SELECT min(event_created_at) FROM gone)
        AND event_created_at <= (SELECT max(event_created_at) FROM gone)
)
SELECT count(*) FROM gone;
