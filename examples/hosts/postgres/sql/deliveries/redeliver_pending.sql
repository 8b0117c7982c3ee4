-- The same of one that is pending.
SELECT
    d.id, d.shard, d.endpoint, d.account_id, d.event_id,
    d.event_created_at, d.status, d.at, d.attempts, d.manual, d.generation, d.version,
    e.number AS endpoint_number, e.disabled AS endpoint_disabled, e.since AS endpoint_since, e.failures AS endpoint_failures,
    e.first_failures AS endpoint_first_failures, e.first_failed_at AS endpoint_first_failed_at,
    e.reminders AS endpoint_reminders,
    e.generation AS endpoint_generation, e.version AS endpoint_version,
    (SELECT plan FROM accounts AS a WHERE a.id = d.account_id), v.erased
FROM deliveries AS d
JOIN endpoints AS e ON e.number = d.endpoint
CROSS JOIN LATERAL (
    SELECT v.body IS NULL AS erased FROM events AS v
    WHERE v.account_id = d.account_id AND v.id = d.event_id AND v.created_at = d.event_created_at
    FOR SHARE
) AS v
WHERE d.endpoint = $1 AND d.id = $2
FOR UPDATE OF d;
