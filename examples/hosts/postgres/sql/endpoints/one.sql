SELECT
    number, id, account_id, shard, created_at, url, description, secrets,
    disabled, since, failures,
    first_failures, first_failed_at, reminders, generation, version
FROM endpoints
WHERE id = $1;
