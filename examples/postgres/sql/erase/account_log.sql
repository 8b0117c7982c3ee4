-- An endpoint's ended deliveries and their log in steps, each a range of their ids.
WITH gone AS (
    DELETE FROM ended
    WHERE endpoint = $1 AND id <= (
        SELECT max(id) FROM (
            SELECT id FROM ended WHERE endpoint = $1 ORDER BY id LIMIT $2
        ) AS step)
    RETURNING id, event_created_at
), log AS (
    DELETE FROM attempts
    WHERE delivery = ANY (ARRAY (SELECT id FROM gone))
        AND event_created_at >= (SELECT min(event_created_at) FROM gone)
        AND event_created_at <= (SELECT max(event_created_at) FROM gone)
)
SELECT count(*) FROM gone;
