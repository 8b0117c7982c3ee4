-- The endpoints that an event of an account goes to: all of them, or one. No lock: events do not
-- wait for each other, nor for senders.
SELECT e.number, e.shard, e.disabled, e.since, e.failures,
    e.first_failures, e.first_failed_at, e.reminders, e.generation, e.version
FROM endpoints AS e
JOIN accounts AS a ON a.id = e.account_id
WHERE e.account_id = $1
    AND a.plan = ANY ($2)
    AND ($3::integer IS NULL OR e.number = $3)
    AND e.disabled IS DISTINCT FROM 'deleted'
ORDER BY e.number;
