SELECT d.id, d.endpoint, d.event_created_at,
    d.status, d.at, d.attempts, d.manual, d.generation, d.version
FROM unnest($1::integer[], $2::bigint[], $3::timestamptz[]) AS w (endpoint, id, event_created_at)
JOIN ended AS d
    ON d.endpoint = w.endpoint AND d.id = w.id AND d.event_created_at = w.event_created_at
ORDER BY d.id
FOR UPDATE OF d;
