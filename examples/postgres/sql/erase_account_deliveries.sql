WITH gone AS (
    DELETE FROM deliveries
    WHERE shard = ANY ($1) AND endpoint = ANY ($2)
    RETURNING id, event_created_at
), log AS (
    DELETE FROM attempts AS a USING gone
    WHERE a.delivery = gone.id AND a.event_created_at = gone.event_created_at
)
SELECT count(*) FROM gone;
