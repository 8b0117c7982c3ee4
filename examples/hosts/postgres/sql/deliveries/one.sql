-- One delivery, pending or ended, with its event and its endpoint's address, secrets and health.
SELECT
    d.id, d.endpoint, d.account_id, d.event_id,
    d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version,
    e.id AS endpoint_id, e.shard, e.url, e.secrets,
    e.number AS endpoint_number, e.disabled AS endpoint_disabled, e.since AS endpoint_since, e.failures AS endpoint_failures,
    e.first_failures AS endpoint_first_failures, e.first_failed_at AS endpoint_first_failed_at,
    e.reminders AS endpoint_reminders,
    e.generation AS endpoint_generation, e.version AS endpoint_version, v.type, v.body
FROM (
    SELECT
        id, endpoint, account_id, event_id,
        event_created_at, status, at, attempts, manual, generation, version
    FROM deliveries
    WHERE id = $2 AND endpoint = $1
    UNION ALL
    SELECT
        id, endpoint, account_id, event_id,
        event_created_at, status, at, attempts, manual, generation, version
    FROM ended
    WHERE id = $2 AND endpoint = $1
) AS d
JOIN endpoints AS e ON e.number = d.endpoint
JOIN events AS v
    ON v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at;
