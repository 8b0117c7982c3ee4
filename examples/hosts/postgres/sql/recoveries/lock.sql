-- A recovery to change, with its endpoint and plan. The endpoint is not locked: if it is disabled
-- meanwhile, what was made due is parked when its attempt begins.
SELECT r.id, r.endpoint, r.shard, r.recovery, r.ended_at, r.paused, r.counted, r.counted_to, r.searched_to,
    e.number, e.id AS endpoint_id, e.account_id,
    e.disabled, e.since, e.failures, e.first_failures, e.first_failed_at, e.reminders,
    e.generation, e.version, a.plan
FROM recoveries AS r
JOIN endpoints AS e ON e.number = r.endpoint
JOIN accounts AS a ON a.id = e.account_id
WHERE r.id = $1
FOR UPDATE OF r;
