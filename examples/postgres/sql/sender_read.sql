-- What it takes to begin: the row as it is now, and the event's bytes. One probe of an index for
-- each, whatever the planner knows of the queue.
SELECT d.id, d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version, e.body
FROM deliveries AS d
CROSS JOIN LATERAL (
    SELECT e.body FROM events AS e
    WHERE e.account_id = d.account_id AND e.id = d.event_id AND e.created_at = d.event_created_at
    LIMIT 1
) AS e
WHERE d.id = ANY ($1);
