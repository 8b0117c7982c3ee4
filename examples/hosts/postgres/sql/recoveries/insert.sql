-- No row if one of this endpoint is running.
INSERT INTO recoveries (endpoint, shard, recovery, version, started_at, counted_to)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (endpoint) WHERE ended_at IS NULL DO NOTHING
RETURNING id;
