INSERT INTO endpoints (
    id, account_id, shard, created_at, url, allow_loopback, secrets,
    disabled, since, failures, generation, version, description)
VALUES ($1, not_erased($2), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (id) DO NOTHING;
