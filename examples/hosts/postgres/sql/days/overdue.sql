-- Pending deliveries of events before $1, in steps, with all that it takes to end them.
SELECT
    d.id, d.endpoint, d.account_id, d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version,
    e.number AS endpoint_number, e.id AS endpoint_id, e.secrets, e.disabled AS endpoint_disabled,
    e.since AS endpoint_since, e.failures AS endpoint_failures,
    e.first_failures AS endpoint_first_failures, e.first_failed_at AS endpoint_first_failed_at,
    e.reminders AS endpoint_reminders,
    e.generation AS endpoint_generation, e.version AS endpoint_version, v.body
FROM deliveries AS d
LEFT JOIN endpoints AS e ON e.number = d.endpoint
LEFT JOIN LATERAL (
    SELECT v.body FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
    OFFSET 0
) AS v ON true
WHERE d.event_created_at < $1 AND d.id > $2
ORDER BY d.id
LIMIT 500;
