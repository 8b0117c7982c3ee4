-- Endpoints that disabled themselves, of shards that this sender owns, whose first reminder is due since $2, or
-- their second since $3: none of those that wait for one takes a place. In pages, after the number $4. Who holds one
-- changes it, and it is looked at again.
SELECT number, id, account_id, shard, disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints
WHERE disabled IN ('gone', 'failing') AND reminders < 2 AND since <= $2 AND (reminders = 0 OR since <= $3)
    AND shard = ANY ($1) AND number > $4
ORDER BY number
LIMIT 100
FOR UPDATE SKIP LOCKED;
