-- Redeliveries of an endpoint that are under way.
SELECT count(*) FROM deliveries
WHERE shard = $1 AND endpoint = $2 AND manual;
