-- What it takes to begin: the row as it is now, and the event's bytes.
SELECT d.id, d.endpoint, d.account_id,
    d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version, e.body
FROM unnest($1::bigint[]) AS w (id)
JOIN deliveries AS d ON d.id = w.id
JOIN events AS e
    ON e.account_id = d.account_id AND e.id = d.event_id AND e.created_at = d.event_created_at;
