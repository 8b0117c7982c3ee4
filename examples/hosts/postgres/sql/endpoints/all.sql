-- The endpoints of an account, oldest first; those that were deleted only on request.
SELECT
    number, id, account_id, shard, created_at, url, description, secrets,
    disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints
WHERE account_id = $1 AND ($2 OR disabled IS DISTINCT FROM 'deleted')
ORDER BY number;
