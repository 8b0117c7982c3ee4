-- What it takes to begin: the row as it is now, and the event's bytes. One probe of an index for
-- each, whatever the planner knows of the queue. $2 and $3 are the first and the last of the events'
-- created_at: days outside are not opened.
SELECT d.id, d.endpoint, d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version, e.body,
    e.traceparent
FROM deliveries AS d
CROSS JOIN LATERAL (
    SELECT e.body, e.traceparent FROM events AS e
    WHERE e.account_id = d.account_id AND e.id = d.event_id AND e.created_at = d.event_created_at
        AND e.created_at BETWEEN $2 AND $3
    LIMIT 1
) AS e
WHERE d.id = ANY ($1);
