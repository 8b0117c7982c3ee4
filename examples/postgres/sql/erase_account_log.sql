-- An account's ended deliveries and their log, in steps.
WITH gone AS (
    DELETE FROM ended AS d
    USING (SELECT id, event_created_at FROM ended WHERE endpoint = $1 ORDER BY id LIMIT $2) AS w
    WHERE d.endpoint = $1 AND d.id = w.id AND d.event_created_at = w.event_created_at
    RETURNING d.id, d.event_created_at
), log AS (
    DELETE FROM attempts AS a USING gone
    WHERE a.delivery = gone.id AND a.event_created_at = gone.event_created_at
)
SELECT count(*) FROM gone;
