-- The shard of an endpoint.
SELECT shard FROM endpoints WHERE number = $1;
