INSERT INTO deliveries (
    id, shard, endpoint, account_id, event_id,
    event_created_at, status, at, attempts, manual, generation, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
