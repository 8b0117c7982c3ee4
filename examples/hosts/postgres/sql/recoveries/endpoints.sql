-- A page of endpoints, with the plans of their accounts: of one account, or of all.
SELECT e.number, e.id, e.shard, e.account_id, e.disabled, e.since, e.failures,
    e.first_failures, e.first_failed_at, e.reminders, e.generation, e.version, a.plan
FROM endpoints AS e
JOIN accounts AS a ON a.id = e.account_id
WHERE e.number > $2 AND ($1::text IS NULL OR e.account_id = $1)
ORDER BY e.number
LIMIT $3;
