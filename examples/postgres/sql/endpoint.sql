SELECT
    number, id, account_id, shard, created_at, url, secrets,
    disabled, since, failures, generation, version
FROM endpoints
WHERE id = $1;
