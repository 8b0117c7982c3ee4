-- An endpoint to change, with the plan of its account.
SELECT
    e.number, e.id, e.account_id, e.shard, e.created_at, e.url, e.description, e.secrets,
    e.disabled, e.since, e.failures,
    e.first_failures, e.first_failed_at, e.reminders, e.generation, e.version, a.plan
FROM endpoints AS e
JOIN accounts AS a ON a.id = e.account_id
WHERE e.id = $1
FOR UPDATE OF e;
