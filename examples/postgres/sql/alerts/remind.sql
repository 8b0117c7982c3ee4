-- Endpoints that disabled themselves a day ago or more, of shards that this sender owns. Who holds one
-- changes it, and it is looked at again.
SELECT number, id, account_id, shard, disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints
WHERE disabled IN ('gone', 'failing') AND reminders < 2 AND since <= $2 AND shard = ANY ($1)
ORDER BY number
LIMIT 100
FOR UPDATE SKIP LOCKED;
